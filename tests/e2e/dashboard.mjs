// The dashboard in a browser, from the login to the decision. See README.md in this folder for the variables.
// usage: node dashboard.mjs [--fake]
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const require = createRequire(join(root, 'web/package.json'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const WAIT = 60000;
const SHOTS = process.env.SHOTS ?? join(root, 'build/screenshots');
const fake = process.argv.includes('--fake') ? await (await import(join(root, 'web/test/fake/serve.mjs'))).serve(0) : null;
const base = fake?.base ?? process.env.BASE_URL?.replace(/\/$/, '');
const token = fake ? 'tdm_pat_fake' : process.env.TOKEN;
if (!base || !token) {
  console.error('dashboard.mjs: set BASE_URL and TOKEN, or give --fake');
  process.exit(2);
}

const failures = [];
let step = 'start';
const fail = (what) => {
  failures.push(`${step}: ${what}`);
  console.error(`FAIL ${step}: ${what}`);
};
const check = (ok, what) => (ok ? console.log(`ok   ${what}`) : fail(what));

async function api(path) {
  const res = await fetch(`${base}/api/v1${path}`, fake ? { headers: { Cookie: await fakeCookie() } } : { headers: { Authorization: `Bearer ${token}` } });
  if (!res.ok) throw new Error(`GET ${path}: ${res.status} ${await res.text()}`);
  return res.json();
}
async function fakeCookie() {
  const res = await fetch(`${base}/api/v1/auth/session`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token }) });
  return res.headers.get('set-cookie').split(';')[0];
}

/** What to look at; what was not named is looked up. */
async function subjects() {
  const project = process.env.PROJECT ?? (await api('/projects')).items[0].name;
  const first = async (kind) => (await api(`/projects/${project}/${kind}`)).items[0]?.name;
  return {
    project,
    failed: (await api(`/projects/${project}/runs?state=failed`)).items[0]?.id,
    run: process.env.RUN ?? (await api(`/projects/${project}/runs?state=running`)).items[0]?.id,
    monitor: process.env.MONITOR ?? (await first('monitors')),
    dataset: process.env.DATASET ?? (await first('datasets')),
    model: process.env.MODEL ?? (await first('models')),
  };
}

let expected401 = false;
let expected404 = false;
function watch(page) {
  page.on('console', (m) => {
    // A refused login is meant to be refused; the browser reports every 401 as an error.
    if (m.type() === 'error' && !(expected401 && m.text().includes('401')) && !(expected404 && m.text().includes('404'))) fail(`console: ${m.text()}`);
  });
  page.on('pageerror', (e) => fail(`uncaught: ${e.message}`));
  page.on('request', (r) => !r.url().startsWith(base) && !r.url().startsWith('data:') && fail(`asks another server: ${r.url()}`));
}

async function shot(page, name, full = true) {
  // Playwright hides the caret by a style of its own, which the policy forbids.
  await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: full, caret: 'initial' });
}

async function accessible(page, name) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }));
  for (const v of result.violations)
    if (v.impact === 'serious' || v.impact === 'critical') fail(`axe on ${name}: ${v.id}: ${v.help} (${v.nodes.length}): ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ''}`).join(' | ')}`);
}

async function login(page, path) {
  step = 'login';
  await page.goto(base + path);
  await page.locator('input[name=token]').fill('tdm_pat_wrong');
  const refused = page.waitForResponse((r) => r.url().endsWith('/auth/session') && r.status() === 401);
  expected401 = true;
  await page.getByRole('button', { name: 'Log in' }).click();
  await refused;
  await page.getByRole('alert').waitFor({ timeout: WAIT });
  expected401 = false;
  await accessible(page, 'login');
  await shot(page, 'login-light');
  await page.locator('input[name=token]').fill(token);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('#main h1').waitFor({ timeout: WAIT });
  check(new URL(page.url()).pathname === path, 'the page that was asked for is shown after the login');
}
const lastLine = (page) => page.evaluate(() => Math.max(0, ...[...document.querySelectorAll('.log-row:not(.absent) .log-no')].map((e) => Number(e.textContent))));

async function liveLog(page) {
  step = 'live log';
  await page.getByRole('navigation', { name: 'Parts of the run' }).getByText('Logs').click();
  await page.locator('.log-row:not(.absent)').first().waitFor({ timeout: WAIT });
  const seen = await lastLine(page);
  await page.waitForFunction((n) => Math.max(0, ...[...document.querySelectorAll('.log-row:not(.absent) .log-no')].map((e) => Number(e.textContent))) > n, seen, { timeout: WAIT });
  check(true, `a line arrived while we looked (after line ${seen})`);
  check((await page.locator('.log-bar .live.on').count()) === 1, 'the log says that it is live');
  await shot(page, 'run-log-live-light', false);
}

async function scrollAway(page) {
  step = 'follow';
  const box = page.locator('.log-box');
  // A short log is made to be longer than its box by a smaller window.
  await page.setViewportSize({ width: 1440, height: 560 });
  const tall = await box.evaluate((b) => b.scrollHeight > b.clientHeight + 60);
  if (!tall) return fail('the log is too short to scroll');
  await box.hover();
  await page.mouse.wheel(0, -2000);
  const pill = page.locator('.pill');
  await pill.waitFor({ timeout: WAIT });
  const top = await box.evaluate((b) => b.scrollTop);
  await page.waitForFunction(() => /new line/.test(document.querySelector('.pill')?.textContent ?? ''), undefined, { timeout: WAIT });
  check((await box.evaluate((b) => b.scrollTop)) === top, 'the log stays where it was scrolled to while lines arrive');
  await shot(page, 'run-log-scrolled-light', false);
  await pill.click();
  await page.waitForFunction(() => {
    const b = document.querySelector('.log-box');
    return b.scrollHeight - b.scrollTop - b.clientHeight < 40;
  }, undefined, { timeout: WAIT });
  check((await pill.count()) === 0, 'following again after the pill was pressed');
  await page.setViewportSize({ width: 1440, height: 900 });
}

async function charts(page) {
  step = 'charts';
  await page.getByRole('navigation', { name: 'Parts of the run' }).getByText('Metrics').click();
  await page.locator('.chart canvas').first().waitFor({ timeout: WAIT });
  await page.locator('.chart').first().getByRole('button', { name: 'Data' }).click();
  check((await page.locator('.chart-table tbody tr').count()) > 0, 'a chart has its data as a table');
  await page.locator('.chart').first().getByRole('button', { name: 'Chart' }).click();
}

async function decisions(page, s) {
  step = 'decision';
  await page.getByRole('navigation', { name: 'Main' }).getByText('Monitors').click();
  await page.locator('td a', { hasText: s.monitor }).first().click();
  await page.locator('.heat tbody td.cell').first().waitFor({ timeout: WAIT });
  check((await page.locator('.heat tbody:not(.summary) tr').count()) > 0, 'the heat table has features');
  const retrained = page.locator('.decision', { hasText: 'retrained' });
  await page.locator('.decision').first().waitFor({ timeout: WAIT });
  const one = (await retrained.count()) > 0 ? retrained.first() : page.locator('.decision').first();
  const sentence = await one.locator('.decision-reason').textContent();
  await one.locator('a').first().click();
  await page.locator('.reason.big').waitFor({ timeout: WAIT });
  const read = await page.locator('.reason.big').textContent();
  check(read === sentence && read.length > 20, `the decision reads: ${read}`);
  return new URL(page.url()).pathname;
}

async function everyPage(page, s, decision) {
  const project = `/projects/${s.project}`;
  const pages = {
    runs: `${project}/runs`,
    'run-overview': `/runs/${s.run}`,
    'run-log': `/runs/${s.run}?tab=logs`,
    'run-metrics': `/runs/${s.run}?tab=metrics`,
    'run-artifacts': `/runs/${s.run}?tab=artifacts`,
    'run-config': `/runs/${s.run}?tab=config`,
    datasets: `${project}/datasets`,
    dataset: `${project}/datasets/${s.dataset}`,
    models: `${project}/models`,
    model: `${project}/models/${s.model}`,
    monitors: `${project}/monitors`,
    monitor: `${project}/monitors/${s.monitor}`,
    decision,
    workers: '/workers',
    ...(s.failed && { 'run-failed': `/runs/${s.failed}` }),
  };
  for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [name, path] of Object.entries(pages)) {
      step = `${name}, ${theme}`;
      await page.goto(base + path);
      await page.locator('#main h1').waitFor({ timeout: WAIT });
      await page.waitForFunction(() => !document.querySelector('.skeleton'), undefined, { timeout: WAIT });
      check((await page.locator('#main .error-box').count()) === 0, `${step}: no error is shown`);
      await accessible(page, name);
      await shot(page, `${name}-${theme}`);
    }
  }
}

async function whyItFailed(page, s) {
  step = 'evidence';
  if (!s.failed) return;
  await page.goto(`${base}/runs/${s.failed}`);
  await page.locator('details.evidence[open]').first().waitFor({ timeout: WAIT });
  const facts = await page.locator('details.evidence[open] .facts').first().textContent();
  check(/Reason.*(Exit code|Signal|Peak memory)/.test(facts), `what the failure rests on is there to be read: ${facts}`);
  if (fake) check((await page.locator('.evidence .tail').textContent()).endsWith('got -1'), 'with the end of its log');
}

/** Of a step on two workers, whose second rank ended it. */
async function ranks(page) {
  step = 'ranks';
  await page.goto(`${base}/runs/run_3`);
  const cause = page.locator('tr', { hasText: 'the cause' });
  await cause.waitFor({ timeout: WAIT });
  check((await cause.innerText()).includes('gpu-02'), 'the rank that ended all is named');
  await page.getByText('End of the log of rank 1').waitFor({ timeout: WAIT });
  await accessible(page, 'ranks');
  await shot(page, 'ranks-light');
  await page.goto(`${base}/runs/run_3?tab=logs&step=train`);
  const count = page.locator('.log-count');
  await count.getByText('31 lines').waitFor({ timeout: WAIT });
  await page.getByLabel('Rank').selectOption({ label: '1 on gpu-02 – failed' });
  await count.getByText('5 lines').waitFor({ timeout: WAIT });
  check(new URL(page.url()).searchParams.get('rank') === '1', 'the log of another rank has an address');
  await page.getByLabel('Attempt').selectOption({ label: '1 – cancelled' });
  await count.getByText('31 lines').waitFor({ timeout: WAIT });
  check(new URL(page.url()).searchParams.get('attempt') === 'att_first_1', 'the rank stays when one looks at another attempt');
  await page.goto(`${base}/runs/run_3?tab=logs&step=evaluate`);
  await page.getByText('evaluate did not start').waitFor({ timeout: WAIT });
  await page.getByText('It needs train, which did not succeed').waitFor({ timeout: WAIT });
}

async function nowhere(page) {
  step = 'no such page';
  await page.emulateMedia({ colorScheme: 'light' });
  expected404 = true;
  const answer = await page.goto(`${base}/xyz`);
  await page.getByText('There is no page at this address').waitFor({ timeout: WAIT });
  check(fake !== null || answer.status() === 404, 'an address without a page says so');
  await accessible(page, 'nowhere');
  await shot(page, 'nowhere-light');
  expected404 = false;
}

/** Only where the run is ours to end. */
async function cancel(page, s) {
  step = 'cancel';
  await page.goto(`${base}/runs/${s.run}?tab=logs`);
  await page.locator('.log-bar .live.on').waitFor({ timeout: WAIT });
  await page.getByRole('button', { name: 'Cancel run' }).click();
  await page.getByRole('button', { name: 'Let it run' }).click();
  check((await page.locator('h1 .s-running').count()) === 1, 'a run goes on when one thinks better of it');
  await page.getByRole('button', { name: 'Cancel run' }).click();
  await page.getByRole('button', { name: 'Cancel the run' }).click();
  await page.locator('h1 .s-cancelled').waitFor({ timeout: WAIT });
  await page.locator('.log-bar .live').waitFor({ state: 'detached', timeout: WAIT });
  check(true, 'a cancelled run says so, and its log ends');
}

/** The cancelled run, as a new one, which is ended as well. */
async function runAgain(page, s) {
  step = 'run again';
  await page.goto(`${base}/runs/${s.run}`);
  await page.getByRole('button', { name: 'Run again' }).click();
  await accessible(page, 'run again');
  await page.getByRole('button', { name: 'From what failed' }).click();
  await page.waitForURL((u) => u.pathname.startsWith('/runs/') && !u.pathname.endsWith(s.run), { timeout: WAIT });
  await page.getByRole('link', { name: 'another run, from what failed' }).waitFor({ timeout: WAIT });
  const made = await api(`/runs/${new URL(page.url()).pathname.split('/').pop()}`);
  check(made.rerun_of === s.run, 'an ended run is run again, and the new one says so');
  await page.getByRole('button', { name: 'Cancel run' }).click();
  await page.getByRole('button', { name: 'Cancel the run' }).click();
  await page.locator('h1 .s-cancelled').waitFor({ timeout: WAIT });
}

async function logOut(page, path) {
  step = 'logout';
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.locator('input[name=token]').waitFor({ timeout: WAIT });
  await page.goto(base + path);
  await page.locator('input[name=token]').waitFor({ timeout: WAIT });
  check(true, 'after the logout nothing is shown without a login');
}

mkdirSync(SHOTS, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), 'tidemill-e2e-'));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  headless: true,
  viewport: { width: 1440, height: 900 },
  colorScheme: 'light',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
try {
  const page = browser.pages()[0] ?? (await browser.newPage());
  page.setDefaultTimeout(WAIT);
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', (e) => console.error(`policy violated: ${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));
  });
  const s = await subjects();
  if (!s.run) throw new Error('there is no running run to look at; start one, or set RUN');
  watch(page);
  await login(page, `/runs/${s.run}`);
  await liveLog(page);
  await scrollAway(page);
  await charts(page);
  const decision = await decisions(page, s);
  await everyPage(page, s, decision);
  await whyItFailed(page, s);
  await nowhere(page);
  if (fake) await ranks(page);
  if (fake || process.env.CANCEL) {
    await cancel(page, s);
    await runAgain(page, s);
  }
  await logOut(page, decision);
} catch (e) {
  fail(e.stack ?? String(e));
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
  fake?.close();
}
console.log(failures.length === 0 ? 'the dashboard passes' : `${failures.length} failures`);
process.exit(failures.length === 0 ? 0 : 1);
