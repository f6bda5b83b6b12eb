// Numbers, sizes and times for people. Absolute times come first, with their zone; the exact value is in the title.
import { signal } from '@preact/signals';
import type { Real, Time } from '../api/types';

const ZONE = 'tidemill.zone';
export type Zone = 'local' | 'utc';
export const zone = signal<Zone>(localStorage.getItem(ZONE) === 'utc' ? 'utc' : 'local');
export function setZone(z: Zone) {
  zone.value = z;
  localStorage.setItem(ZONE, z);
}

const MINUS = '−';
const signed = (text: string) => text.replace(/^-/, MINUS);

/** Up to four significant digits, never in more than eight characters or so. */
export function number(v: Real | null | undefined): string {
  if (v === null || v === undefined) return '–';
  if (v === 'Infinity' || v === Infinity) return '∞';
  if (v === '-Infinity' || v === -Infinity) return `${MINUS}∞`;
  if (typeof v === 'string' || Number.isNaN(v)) return 'NaN';
  if (v === 0) return '0';
  const size = Math.abs(v);
  if (Number.isInteger(v) && size < 1e12) return signed(count(v));
  if (size >= 1e7 || size < 1e-4) return signed(v.toExponential(2).replace('e+', 'e'));
  const digits = Math.max(0, 3 - Math.floor(Math.log10(size)));
  return signed(v.toFixed(Math.min(digits, 6)).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, ''));
}

export function count(n: number): string {
  return n.toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

export const percent = (v: number | null | undefined) =>
  v === null || v === undefined ? '–' : `${Math.round(v * 100)}\u202f%`;

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
export function bytes(n: number): string {
  let u = 0;
  let v = n;
  while (v >= 1024 && u < UNITS.length - 1) {
    v /= 1024;
    u++;
  }
  const text = u === 0 || v >= 100 ? String(Math.round(v)) : v.toFixed(1).replace(/\.0$/, '');
  return `${text} ${UNITS[u]}`;
}

/** "42 s", "3 m 05 s", "2 h 10 m", "3 d 4 h". */
export function duration(ms: number): string {
  if (ms < 0) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = Math.floor(ms / 1000);
  if (s < 60) return ms < 10000 ? `${(ms / 1000).toFixed(1)} s` : `${s} s`;
  const two = (n: number) => String(n).padStart(2, '0');
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} m`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

const part = (n: number, width = 2) => String(n).padStart(width, '0');

/** "2026-11-01 14:03" in the chosen zone; with seconds when asked. */
export function time(t: Time | number | null | undefined, seconds = false, z: Zone = zone.value): string {
  if (t === null || t === undefined || t === 0) return '–';
  const d = new Date(t);
  if (Number.isNaN(d.getTime())) return String(t);
  const utc = z === 'utc';
  const day = [
    part(utc ? d.getUTCFullYear() : d.getFullYear(), 4),
    part((utc ? d.getUTCMonth() : d.getMonth()) + 1),
    part(utc ? d.getUTCDate() : d.getDate()),
  ].join('-');
  const clock = [part(utc ? d.getUTCHours() : d.getHours()), part(utc ? d.getUTCMinutes() : d.getMinutes())];
  if (seconds) clock.push(part(utc ? d.getUTCSeconds() : d.getSeconds()));
  return `${day} ${clock.join(':')}`;
}

/** Milliseconds are what tells log lines apart. */
export function clock(t: Time, z: Zone = zone.value): string {
  const d = new Date(t);
  const utc = z === 'utc';
  return `${time(t, true, z).slice(11)}.${part(utc ? d.getUTCMilliseconds() : d.getMilliseconds(), 3)}`;
}

export function zoneName(z: Zone = zone.value): string {
  if (z === 'utc') return 'UTC';
  const off = -new Date().getTimezoneOffset();
  if (off === 0) return 'UTC';
  return `UTC${off < 0 ? MINUS : '+'}${Math.floor(Math.abs(off) / 60)}${off % 60 ? `:${part(Math.abs(off) % 60)}` : ''}`;
}

/** "5 m ago", for what is better known by its age. */
export function ago(t: Time | null, now = Date.now()): string {
  if (!t) return 'never';
  const ms = now - new Date(t).getTime();
  return ms < 2000 ? 'now' : `${duration(ms).replace(/ \d+ [sm]$/, '').replace(/\.\d s$/, ' s')} ago`;
}

const QUARTERS: Record<string, number> = { '01': 1, '04': 2, '07': 3, '10': 4 };

/** A window by its span in the data's time: "2008 Q1", "Mar 2008", "2008-03-01", or start – last day. */
export function span(start: Time, end: Time): string {
  const a = start.slice(0, 10);
  const b = end.slice(0, 10);
  const days = Math.round((Date.parse(end) - Date.parse(start)) / 86400000);
  const q = QUARTERS[a.slice(5, 7)];
  if (a.endsWith('-01') && b.endsWith('-01')) {
    if (days >= 365 && a.slice(4) === '-01-01') return a.slice(0, 4);
    if (q && days >= 90 && days <= 92) return `${a.slice(0, 4)} Q${q}`;
    if (days >= 28 && days <= 31)
      return `${new Intl.DateTimeFormat('en', { month: 'short', timeZone: 'UTC' }).format(new Date(a))} ${a.slice(0, 4)}`;
  }
  if (days < 1) return `${a} ${start.slice(11, 16)}`;
  if (days === 1) return a;
  return `${a} – ${new Date(Date.parse(end) - 86400000).toISOString().slice(0, 10)}`;
}

export const shortHash = (h: string | undefined) => (h ? h.slice(0, 10) : '–');

/** Runs of a registered pipeline are counted; a file that was submitted by itself has no count. */
export const runCount = (number?: number) => (number ? `#${number}` : '');

export const plural = (n: number, one: string, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
