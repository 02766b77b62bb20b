// A browser, viewers and profiles for the tests: each test clicks what a person clicks.
import { chromium } from 'playwright-core';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = join(dirname(fileURLToPath(import.meta.url)), '../..');
export const weir = process.env.WEIR ?? join(repository, 'build/weir');
export const fixture = join(dirname(weir), 'tests/fixture_store');
export const shots = process.env.SCREENSHOTS ?? join(dirname(weir), 'screenshots');
export const work = mkdtempSync(join(tmpdir(), 'weir-page-'));
mkdirSync(shots, { recursive: true });

export const run = (program, ...words) => execFileSync(program, words, { cwd: work, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });

// A program with its lines under /src, wherever this machine keeps them; weir is told by --source-map.
export function compile(name, source) {
  run('g++', '-O1', '-g', '-pthread', `-fdebug-prefix-map=${work}=/src`, '-o', name, source);
}
export const sourceMap = ['--source-map', `/src=${work}`];

let browser;
const running = new Set();
const contexts = new Set();

export async function newPage({ width = 1280, height = 800, theme = 'light', ...more } = {}) {
  browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, ...more });
  contexts.add(context);
  const page = await context.newPage();
  page.wrong = [];
  page.asked = new Set(); // and not answered yet
  page.on('request', (r) => page.asked.add(r));
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, (r) => page.asked.delete(r));
  page.on('pageerror', (e) => page.wrong.push(e.message));
  page.on('console', (m) => m.type() === 'error' && !/status of 400/.test(m.text()) && page.wrong.push(m.text()));
  page.setDefaultTimeout(300000);
  return page;
}

export async function open(address, options) {
  const page = await newPage(options);
  await page.goto(address);
  await page.waitForSelector('.app, .failed');
  return page;
}

// Pages that nobody looks at any more cost time: each asks every few seconds whether its profile has changed.
export async function closePages() {
  await Promise.all([...contexts].map((c) => c.close()));
  contexts.clear();
}

// Until everything that was asked for is there, and drawn.
export async function settled(page) {
  const frames = () =>
    page.evaluate(async () => {
      for (let i = 0; i < 3; i++) await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      return !document.querySelector('.waiting, [aria-busy=true]');
    });
  for (const end = Date.now() + 300000; Date.now() < end; )
    if ((await frames()) && page.asked.size === 0 && (await frames())) return;
  throw new Error('the page does not come to rest: ' + [...page.asked].map((r) => r.url()).join(' '));
}

// Starts `weir view`; resolves with its address when it listens.
export function view(file, ...options) {
  return new Promise((resolve, reject) => {
    const child = spawn(weir, ['view', file, '--no-open', ...options], { cwd: work, stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
    let errors = '';
    child.stderr.on('data', (d) => (errors += d));
    child.stdout.once('data', (d) => resolve({ address: String(d).trim(), stop: () => stop(child) }));
    child.once('close', (status) => reject(Object.assign(new Error(errors), { status })));
  });
}

function stop(child) {
  running.delete(child);
  return new Promise((resolve) => {
    child.once('close', (status) => resolve(status));
    child.kill('SIGTERM');
  });
}

export async function end() {
  await browser?.close();
  await Promise.all([...running].map(stop));
  rmSync(work, { recursive: true, force: true });
}

export const shot = (page, name) => page.screenshot({ path: join(shots, name + '.png') });

// Nodes of the graph, when the layout is there.
export async function drawn(page) {
  await page.waitForSelector('#river .node');
  await settled(page);
  return page.locator('#river .node').count();
}
