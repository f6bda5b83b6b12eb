// Fails the build when the dashboard has outgrown its budget or would break the server's Content-Security-Policy.
import { readFileSync, readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const JS_MAX = 120 * 1000; // bytes, gzipped, all pages together

const assets = new URL('../dist/assets/', import.meta.url);
const scripts = readdirSync(assets).filter((f) => f.endsWith('.js'));
const size = scripts.reduce((n, f) => n + gzipSync(readFileSync(new URL(f, assets)), { level: 9 }).length, 0);
const html = readFileSync(new URL('../dist/index.html', import.meta.url), 'utf8');
const problems = [];
if (size > JS_MAX) problems.push(`the scripts are ${size} bytes gzipped, more than ${JS_MAX}`);
if (/<script(?![^>]*\ssrc=)/.test(html)) problems.push('index.html has an inline script');
if (/<style|\sstyle=/.test(html)) problems.push('index.html has an inline style');
if (/(?:src|href)="(?:https?:)?\/\//.test(html)) problems.push('index.html loads something from elsewhere');
for (const p of problems) console.error(`budget: ${p}`);
if (problems.length > 0) process.exit(1);
console.log(`budget: ${(size / 1000).toFixed(1)} kB of scripts gzipped, of ${JS_MAX / 1000} kB`);
