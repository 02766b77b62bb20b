// V9: exports are opened by the tools that they are for. speedscope's own page, and the Firefox Profiler's own code (its command line
// loads a file as its page does), must find the threads, functions and times that `weir report` tells.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { closePages, compile, end, fixture, newPage, repository, run, shot, weir, work } from './harness.mjs';

const { resolve } = createRequire(import.meta.url);
const speedscope = join(dirname(resolve('speedscope/package.json')), 'dist/release/index.html');
const profiler = resolve('@firefox-devtools/profiler-cli');

// Two threads that were counted; three of two processes that were sampled, with code that nobody knows; and names that hurt.
const profiles = { 'demo.weir': 2, 'sampled.weir': 3, 'rich.weir': 3 };

before(() => {
  copyFileSync(join(repository, 'viewer/e2e/demo.cc'), join(work, 'demo.cc'));
  compile('demo', 'demo.cc');
  run(weir, 'profile', '-q', '--paths=full', '-o', 'demo.weir', '--', './demo');
  run(fixture, 'sampled', 'sampled.weir');
  run(fixture, 'rich', 'rich.weir');
});
afterEach(closePages);
after(end);

const report = (file, view, ...options) => JSON.parse(run(weir, 'report', file, view, '--format', 'json', ...options))[view];
// What a thread did, in `scale`s: functions with the most time of their own first.
function functionsOf(file, tid, scale, ...more) {
  const rows = report(file, 'functions', ...more, '--thread', String(tid), ...(file === 'sampled.weir' ? [] : ['--os-calls', 'self']));
  return rows.map((f) => ({ name: f.name, image: f.image ?? '', self: f.self * scale, total: f.total * scale }));
}
const sum = (rows) => rows.reduce((all, f) => all + f.self, 0);
const near = (a, b, tolerance) => Math.abs(a - b) <= tolerance * Math.max(a, b) + 1e-12;

// "1,632,000 (22%)", "600.00µs (23%)"
function figure(text) {
  const [, number, unit] = /^([\d.,]+)(ns|µs|ms|s)?/.exec(text);
  return Number(number.replaceAll(',', '')) * { ns: 1e-9, µs: 1e-6, ms: 1e-3 }[unit] || Number(number.replaceAll(',', ''));
}

for (const [file, count] of Object.entries(profiles))
  test(`speedscope: ${file}`, async () => {
    run(weir, 'export', file, '--format', 'speedscope', '-o', file + '.json');
    const data = readFileSync(join(work, file + '.json')).toString('base64');
    writeFileSync(join(work, file + '.js'), `speedscope.loadFileFromBase64('${file}', '${data}')`);
    const page = await newPage();
    await page.goto(`file://${speedscope}#localProfilePath=${join(work, file + '.js')}`);
    await page.getByText('Sandwich').click();
    // The threads are in a list behind the title, with what each weighs.
    const threads = page.locator('tr', { has: page.locator('td', { hasText: /\(process \d+, thread \d+\)/ }) });
    await threads.first().waitFor({ state: 'attached' });
    assert.equal(await threads.count(), count);
    const seconds = file === 'sampled.weir' ? 1 / 1000 : 1;
    for (let i = 0; i < count; i++) {
      const [, title, weight] = await threads.nth(i).locator('td').allTextContents();
      const ours = functionsOf(file, /thread (\d+)/.exec(title)[1], seconds);
      assert.ok(near(figure(weight), sum(ours), 0.005), `${title}: ${weight}, ${sum(ours)}`);
      assert.match(weight, file === 'sampled.weir' ? /^[\d.]+(ms|s)$/ : /^[\d,]+$/, 'time, or cycles');
      // The page begins with the largest; `n` and `p` go to the others.
      const at = () => page.evaluate(() => Number(/\((\d+)\/\d+\)/.exec(document.body.innerText)?.[1] ?? 1));
      while ((await at()) !== i + 1) {
        const from = await at();
        await page.keyboard.press(from < i + 1 ? 'n' : 'p');
        await page.waitForFunction((n) => !document.body.innerText.includes(`(${n}/`), from);
      }
      const shown = await page.locator('tr').evaluateAll((all) => all.map((r) => [...r.children].map((c) => c.textContent)).filter((r) => /%/.test(r[0])));
      assert.ok(shown.length >= Math.min(10, ours.length), `${shown.length} of ${ours.length} functions`);
      assert.ok(near(figure(shown[0][1]), ours[0].self, 0.01), `${shown[0]}`);
      for (const [total, self, name] of shown)
        assert.ok(ours.some((f) => f.name.trim() === name.trim() && near(f.self, figure(self), 0.01) && near(f.total, figure(total), 0.01)), `${name}: ${self} of ${total}`);
    }
    assert.deepEqual(page.wrong, []);
    await shot(page, `speedscope-${file}`);
  });

// A session of the profiler, that loads the file; questions go to it by a socket. (Who asks before it listens ends it.)
async function withProfiler(file, look) {
  const directory = mkdtempSync(join(work, 's'));
  const env = { ...process.env, PROFILER_CLI_SESSION_DIR: directory, PROFILER_CLI_NO_SYMBOLICATE: '1' };
  const session = spawn(process.execPath, [profiler, '--daemon', join(work, file), '--session', 'w'], { env, stdio: 'ignore' });
  const ended = new Promise((done) => session.once('close', done));
  const ask = (...words) => JSON.parse(execFileSync(process.execPath, [profiler, ...words, '--session', 'w', '--json'], { env, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' }));
  try {
    const log = () => (existsSync(join(directory, 'w.log')) ? readFileSync(join(directory, 'w.log'), 'utf8') : '');
    for (const late = Date.now() + 300000; !log().includes('Profile loaded successfully'); await new Promise((go) => setTimeout(go, 20)))
      assert.ok(Date.now() < late && session.exitCode === null, `the profiler does not load ${file}: ${log()}`);
    look(ask);
  } finally {
    session.kill();
    await ended;
  }
}

for (const [file, count] of Object.entries(profiles))
  test(`Firefox Profiler: ${file}`, async () => {
    // (On call paths of an exact profile the time of inlined functions is a share: folded, all figures are exact.)
    run(weir, 'export', file, '--format', 'firefox', '--fold-inlined', '-o', 'firefox.json');
    await withProfiler('firefox.json', (ask) => {
      const { threads } = ask('thread', 'list', '--limit', '0');
      assert.equal(threads.length, count);
      const isTime = file === 'sampled.weir'; // 1,000 a second; a model's cycles are no time
      for (const thread of threads) {
        const ours = functionsOf(file, thread.tid, 1, '--fold-inlined');
        const known = report(file, 'threads').find((t) => t.tid === thread.tid);
        assert.deepEqual([thread.name, Number(thread.pid)], [known.name, known.pid]);
        if (isTime) assert.ok(near(thread.cpuMs, sum(ours), 1e-3) || Math.abs(thread.cpuMs - sum(ours)) < 1e-3, `${thread.cpuMs} ms, ${sum(ours)} ms`);
        const { functions, weightType } = ask('thread', 'functions', '--thread', thread.threadHandle, '--limit', '0', '--include-idle');
        assert.equal(weightType, isTime ? 'tracing-ms' : 'samples');
        const theirs = functions.map((f) => ({ name: f.name, library: f.library ?? '', self: f.selfSamples, total: f.totalSamples }));
        assert.ok(near(sum(theirs), sum(ours), 1e-6));
        for (const f of ours) {
          const same = theirs.some((t) => near(t.self, f.self, 1e-6) && near(t.total, f.total, 1e-6) && t.library === f.image.split('/').pop() && t.name.slice(0, 8) === f.name.slice(0, 8));
          assert.ok(same, `${f.name}: ${f.self} of ${f.total}\n${JSON.stringify(theirs.slice(0, 5), null, 1)}`);
        }
      }
    });
  });
