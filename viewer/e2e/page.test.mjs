// The page as people use it, on `weir view` and on the exported file.
import assert from 'node:assert/strict';
import { appendFileSync, copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { closePages, compile, drawn, end, fixture, open, repository, run, settled, shot, sourceMap, view, weir, work } from './harness.mjs';

let live; // the demo, served
let exported; // and as a file

before(async () => {
  copyFileSync(join(repository, 'viewer/e2e/demo.cc'), join(work, 'demo.cc'));
  compile('demo', 'demo.cc');
  // On a machine that is busy an OS call may take longer than all of the code, whose shares the tests know.
  for (let i = 0, calm = false; i < 20 && !calm; i++) {
    run(weir, 'profile', '-q', '--paths=full', '-o', 'demo.weir', '--', './demo');
    const { total, os_time } = JSON.parse(run(weir, 'report', 'demo.weir', 'functions', '--format', 'json')).run;
    calm = os_time < total / 2;
  }
  live = await view('demo.weir', ...sourceMap);
  run(weir, 'export', 'demo.weir', '--format', 'html', '-o', 'demo.html', ...sourceMap);
  exported = 'file://' + join(work, 'demo.html');
});
afterEach(closePages);
after(end);

const row = (page, name) => page.locator('.view .row', { hasText: name }).first();
const names = (page) => page.locator('.view .row .name').evaluateAll((all) => all.map((e) => e.title)); // in full, wherever they are cut
const detail = (page) => page.locator('.detail h2').innerText();
const detailIs = (page, begin) => page.waitForFunction((b) => document.querySelector('.detail h2')?.textContent.startsWith(b), begin);

for (const kind of ['live', 'file']) {
  const options = kind === 'file' ? { offline: true } : {};
  const start = (hash = '', more = {}) => open((kind === 'live' ? live.address : exported) + hash, { ...options, ...more });

  test(`${kind}: functions are sorted, filtered, selected; back and forward; links restore`, async () => {
    const page = await start('#view=functions');
    await page.waitForSelector('.row');
    const shares = (await page.locator('.view .row .share.self').allInnerTexts()).map((t) => (t === '·' ? 0 : parseFloat(t.replace('<', ''))));
    assert.deepEqual(shares, [...shares].sort((a, b) => b - a), 'self time first');
    await page.getByRole('button', { name: 'Function', exact: true }).click();
    await page.waitForFunction(() => location.hash.includes('sort=name'));
    await settled(page);
    const sorted = await names(page);
    assert.deepEqual(sorted, [...sorted].sort(), 'by name');
    await page.fill('#find-here', 'FIBO');
    await page.waitForFunction(() => document.querySelectorAll('.view .row').length === 1);
    await row(page, 'fibonacci').click();
    await detailIs(page, 'fibonacci(int)');
    assert.match(await page.locator('.facts').innerText(), /recursive/);
    await page.fill('#find-here', '^(parse|main)');
    await page.getByLabel('regular expression').check();
    await page.waitForFunction(() => document.querySelectorAll('.view .row').length >= 2);
    await page.fill('#find-here', '(');
    assert.match(await page.locator('.failed').innerText(), /regular expression/);
    await page.fill('#find-here', 'parse');
    await row(page, 'parse(').click();
    await detailIs(page, 'parse(');
    await page.locator('.calls', { hasText: 'Callers' }).locator('.row', { hasText: 'read_all' }).click();
    await detailIs(page, 'read_all(int)');
    await page.getByLabel('Back', { exact: true }).click();
    await detailIs(page, 'parse(');
    await page.keyboard.press(']');
    await detailIs(page, 'read_all(int)');
    const again = await open(page.url(), options);
    await detailIs(again, 'read_all(int)');
    assert.equal(await again.inputValue('#find-here'), 'parse');
    assert.deepEqual([...page.wrong, ...again.wrong], []);
  });

  test(`${kind}: the graph: filter, states, widths, root, names, overview`, async () => {
    const page = await start('#view=graph&min=0.04');
    const all = await drawn(page);
    await page.keyboard.press('0'); // all of it in sight
    const node = (name) => page.locator('#river .node', { hasText: name }).first();
    await node('read_all').click();
    await page.waitForFunction(() => document.querySelector('.full-name').textContent === 'read_all(int)'); // the full name below
    assert.ok((await page.locator('.overview .skeleton-node.at').count()) === 1 && (await page.locator('.overview .skeleton-node.lit').count()) >= 2, 'spotlight');
    assert.ok(await page.locator('#river .node', { hasText: 'fibonacci' }).locator('.recursive').count(), 'a curved bar');
    assert.equal(await page.locator('#river .node', { hasText: 'fibonacci' }).locator('.mark-shape').count(), 0, 'a leaf has no mark');
    assert.ok(await node('read_all').locator('.state-some').count());
    await page.getByRole('button', { name: 'Collapse' }).click();
    await page.waitForSelector('#river .state-hidden');
    const until = (what) => page.waitForFunction(what, all);
    await until((n) => document.querySelectorAll('#river .node').length < n);
    await page.getByRole('button', { name: 'Show subtree' }).click();
    await until((n) => document.querySelectorAll('#river .node').length === n);
    await page.getByRole('button', { name: 'Show subtree' }).click();
    await page.waitForSelector('#river .state-all');
    await until((n) => document.querySelectorAll('#river .node').length > n); // all children, whatever the filter
    const widths = () => page.locator('#river path.arc[stroke-width]').evaluateAll((arcs) => arcs.map((a) => +a.getAttribute('stroke-width')));
    assert.ok(new Set(await widths()).size > 2 && Math.max(...(await widths())) <= 9, 'logarithmic');
    await page.getByLabel('Arcs').selectOption('none');
    assert.deepEqual([...new Set(await widths())], [1]);
    await page.getByLabel('Arcs').selectOption('linear');
    assert.ok((await widths()).every((w) => Number.isInteger(w) && w >= 1 && w <= 10));
    await page.getByLabel('Arcs').selectOption('adaptive');
    assert.ok(Math.abs(Math.min(...(await widths())) - 1) < 1e-6, 'the smallest has 1');
    await page.getByLabel('Right data').selectOption('calls');
    await page.waitForFunction(() => [...document.querySelectorAll('#river .node')].some((n) => /parse.*8,000×/.test(n.textContent)));
    await page.getByLabel('Name length').fill('8');
    await page.waitForFunction(() => [...document.querySelectorAll('#river .node')].every((n) => n.querySelector('tspan:not(.datum)').textContent.length <= 8));
    await page.getByLabel('Time filter in percent').fill('20');
    await page.keyboard.press('Tab');
    await page.waitForFunction(() => location.hash.includes('min=0.2'));
    await drawn(page);
    const box = () => page.locator('#river').getAttribute('viewBox');
    const there = await box();
    const pane = await page.locator('.overview svg').boundingBox();
    await page.mouse.move(pane.x + pane.width / 2, pane.y + pane.height / 2);
    await page.mouse.down();
    await page.mouse.move(pane.x + pane.width / 2 + 20, pane.y + pane.height - 30, { steps: 4 });
    await page.mouse.up();
    assert.notEqual(await box(), there, 'the box drags the detail');
    await page.keyboard.press('0');
    await page.getByLabel('Function detail').getByRole('button', { name: 'Make root' }).click();
    await page.waitForFunction(() => location.hash.includes('root='));
    await drawn(page);
    assert.equal(await page.locator('#river .node.is-root').count(), 1);
    const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as SVG' }).click()]);
    assert.match(readFileSync(await saved.path(), 'utf8'), /^<svg[^]*read_all|read_…/);
    assert.deepEqual(page.wrong, []);
  });

  test(`${kind}: the graph opens at thirty functions`, async () => {
    const page = await start('#view=graph');
    const shown = await drawn(page);
    assert.ok(shown >= 5 && shown <= 30, `${shown} functions`);
    assert.match(await page.locator('.filter label').innerText(), /≥ [\d.]+ %/);
    const odd = await start('#view=graph&min=abc');
    assert.equal(await drawn(odd), shown);
  });

  test(`${kind}: flame graph: select, zoom, search, icicle, reversed, keys`, async () => {
    const page = await start('#view=flame');
    const canvas = page.locator('canvas');
    await canvas.waitFor();
    await settled(page);
    const box = await canvas.boundingBox();
    const at = (level) => ({ position: { x: box.width / 4, y: box.height - level * 19 - 8 } });
    await canvas.click(at(3));
    await page.waitForFunction(() => document.querySelector('.full-name').textContent !== 'Nothing is selected');
    await canvas.dblclick(at(3));
    await page.waitForFunction(() => location.hash.includes('zoom='));
    assert.equal(await page.locator('.tip').count(), 0, 'the tip was of a frame of the picture before');
    assert.match(await page.locator('.caption').innerText(), /Click selects/);
    await page.getByRole('button', { name: /All of it/ }).click();
    await page.waitForFunction(() => !location.hash.includes('zoom='));
    await page.fill('#find-here', 'no such name');
    assert.equal(await page.locator('.matched').innerText(), 'no match');
    await page.fill('#find-here', 'sum_of_squares');
    assert.ok(parseFloat(await page.locator('.matched').innerText()) > 10, 'the share of what matches');
    await page.locator('#find-here').blur();
    await page.getByRole('radio', { name: 'Icicle' }).click();
    await page.getByRole('radio', { name: 'Reversed' }).click();
    await page.waitForFunction(() => location.hash.includes('inverted=1') && location.hash.includes('shape=icicle'));
    await settled(page);
    await canvas.focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.querySelector('canvas').getAttribute('aria-label').includes('total'));
    await page.keyboard.press('z');
    await page.waitForFunction(() => location.hash.includes('zoom='));
    const depth = () => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get('zoom')?.split('.').length ?? 0);
    const deep = await depth();
    await page.keyboard.press('u');
    assert.equal(await depth(), deep - 1);
    await page.keyboard.press('0');
    assert.equal(await depth(), 0);
    assert.deepEqual(page.wrong, []);
  });

  test(`${kind}: source and disassembly: marks, heat, the hottest line`, async () => {
    const page = await start('#view=functions');
    await page.keyboard.press('/');
    await page.keyboard.type('fibonacci');
    await page.waitForSelector('#found li[role=option]');
    await page.keyboard.press('Enter');
    await page.keyboard.press('4');
    await page.waitForSelector('.listing code');
    const listing = page.getByRole('grid', { name: 'Source' });
    await listing.locator('.row', { hasText: 'refuse' }).waitFor();
    assert.equal((await listing.locator('.row', { hasText: 'refuse' }).locator('.mark').innerText()).trim(), '#');
    await page.keyboard.press('h');
    const hot = await listing.locator('.row.current').innerText();
    assert.match(hot, /fibonacci|return|if/);
    assert.ok(await page.getByRole('grid', { name: 'Disassembly' }).locator('.row').count());
    await page.getByRole('radio', { name: 'Disassembly' }).click();
    assert.equal(await page.getByRole('grid', { name: 'Source' }).count(), 0);
    assert.ok((await page.locator('.listing .row.never:not(.begins)').count()) > 0, 'all of a block that never ran');
    assert.deepEqual(page.wrong, []);
  });

  test(`${kind}: threads, OS calls, coverage, the run`, async () => {
    const page = await start('#view=threads');
    await page.waitForSelector('.view .row');
    assert.equal(await page.locator('.view .row').count(), 2);
    if (kind === 'live') {
      await page.locator('.view .row').nth(1).click();
      await page.waitForFunction(() => location.hash.includes('thread='));
      const entries = await page.evaluate(() => history.length);
      for (const key of ['ArrowUp', 'ArrowDown']) await page.keyboard.press(key);
      assert.equal(await page.evaluate(() => history.length), entries, 'keys leave no trail');
      await page.keyboard.press('7');
      await settled(page);
      const calls = await page.locator('.view .row .cell:nth-child(3)').allInnerTexts();
      const sum = calls.reduce((n, c) => n + Number(c.replaceAll(',', '')), 0);
      assert.match(await page.locator('.view .bar').innerText(), new RegExp(`^${sum} OS calls? took`), 'of this thread');
      await page.evaluate(() => (location.hash += '&fn=' + 1e6));
      await page.waitForFunction(() => /no function 1000000/.test(document.querySelector('.full-name').textContent));
      await page.goBack();
      await page.keyboard.press('1');
      await page.fill('#find-here', 'sum_of_squares');
      // Called once there, and 8,000 times in the other thread.
      await page.waitForFunction(() => document.querySelector('.view .row')?.children[4]?.textContent === '1');
      await page.getByRole('button', { name: 'All threads' }).click();
    }
    await page.getByRole('button', { name: 'OS calls' }).click();
    await row(page, 'write').waitFor();
    await page.getByRole('button', { name: 'Calls', exact: true }).click();
    await page.waitForFunction(() => location.hash.includes('oscalls_by=calls'));
    const made = (await page.locator('.view .row .cell:nth-child(3)').allInnerTexts()).map((c) => Number(c.replaceAll(',', '')));
    assert.deepEqual(made, [...made].sort((a, b) => b - a));
    await row(page, 'write').locator('a').first().click();
    assert.notEqual(await detail(page), '');
    await page.getByRole('button', { name: 'Coverage' }).click();
    await row(page, '/demo.cc').waitFor();
    assert.match(await page.locator('.view .row').first().innerText(), /demo/, 'the program comes first');
    await page.fill('#find-here', 'demo.cc');
    await row(page, '/src/demo.cc').dblclick();
    await page.getByRole('grid', { name: 'Source' }).locator('.row', { hasText: 'fibonacci(int n)' }).waitFor();
    await page.locator('.detail .calls .row').first().click();
    await page.waitForFunction(() => !location.hash.includes('file='));
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    assert.match(await page.locator('.view.run').innerText(), /\.\/demo[^]*Is the data whole\?/);
    assert.deepEqual(page.wrong, []);
  });
}

test('keys of a focused control are its own; the focus is not lost', async () => {
  const page = await open(live.address + '#view=functions');
  await page.waitForSelector('.row');
  const address = () => page.evaluate(() => location.hash);
  const focusIsAt = (what) => page.waitForFunction((w) => document.activeElement.matches(w), what);
  await page.getByRole('button', { name: 'Total' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => /view=functions.*sort=total/.test(location.hash));
  await page.keyboard.press('/');
  await page.keyboard.type('fibonacci');
  await page.waitForSelector('#found li[role=option]');
  await page.keyboard.press('Enter');
  await focusIsAt('.view .body');
  await page.keyboard.press('?');
  await focusIsAt('dialog');
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press('Tab');
    await focusIsAt('body, dialog, dialog *');
  }
  await page.keyboard.press('Escape');
  await focusIsAt('.view .body');
  await page.keyboard.press('2');
  await drawn(page);
  const before = await address();
  const slider = page.locator('#min');
  const at = await slider.inputValue();
  await slider.focus();
  await page.keyboard.press('ArrowRight');
  assert.equal(Number(await slider.inputValue()), Number(at) + 1);
  assert.ok((await address()).startsWith(before), 'no other function is selected');
  await page.locator('.icon[aria-label^=Theme]').focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'light');
  assert.match(await address(), /view=graph/);
  const entries = await page.evaluate(() => history.length);
  await page.keyboard.press('r');
  assert.equal(await page.evaluate(() => history.length), entries + 1, 'Back leads to the root before');
  await page.keyboard.press('3');
  await page.getByRole('radio', { name: 'Flame' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.activeElement.textContent === 'Icicle' && document.activeElement.getAttribute('aria-checked') === 'true');
  assert.deepEqual(page.wrong, []);
});

test('keys for everything, and `?` lists them; the theme', async () => {
  const page = await open(live.address);
  await page.waitForSelector('.row');
  assert.match(new URL(page.url()).hash, /view=functions/, 'a link has its view');
  for (const [key, title] of [['2', 'Graph'], ['3', 'Flame graph'], ['4', 'Source'], ['6', 'Threads'], ['7', 'OS calls'], ['8', 'Coverage'], ['9', 'Run'], ['1', 'Functions']]) {
    await page.keyboard.press(key);
    await page.waitForFunction((t) => document.querySelector('nav [aria-current]')?.textContent === t, title);
  }
  await page.keyboard.press('?');
  assert.match(await page.getByRole('dialog').innerText(), /go to a function[^]*back[^]*forward/);
  await shot(page, 'keys');
  await page.keyboard.press('Escape');
  assert.equal(await page.getByRole('dialog').count(), 0);
  await page.waitForSelector('.row');
  const at = () => page.evaluate(() => Number(document.querySelector('.row.current')?.getAttribute('aria-rowindex') ?? 0));
  for (const key of ['ArrowDown', 'j']) {
    const before = await at();
    for (let i = 0; i < 20 && (await at()) <= before; i++) {
      await page.keyboard.press(key);
      await settled(page);
    }
    assert.ok((await at()) > before, key);
  }
  await page.keyboard.press('t');
  await page.keyboard.press('t');
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
  await page.reload();
  await page.waitForSelector('.row');
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark'); // remembered
});

// Names for what can be used, and contrast of what can be read (WCAG AA).
const accessible = () => {
  const wrong = [];
  for (const e of document.querySelectorAll('button, input, select, a, [role=grid], [role=img], [tabindex="0"]'))
    if (!(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || e.title)) wrong.push('no name: ' + e.outerHTML.slice(0, 80));
  const rgb = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  for (const e of document.querySelectorAll('nav button, .head .cell, .row .cell, .facts dt, .facts dd, .bar, .faint, footer, .caption, h3')) {
    if (!e.textContent.trim() || e.closest(':disabled') || !e.getClientRects().length) continue;
    let under = e;
    while (under && (rgb(getComputedStyle(under).backgroundColor)[3] ?? 1) < 1) under = under.parentElement;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(rgb(getComputedStyle(under ?? document.body).backgroundColor))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(1)}: ${e.className} ${e.textContent.slice(0, 30)}`);
  }
  return [...new Set(wrong)].slice(0, 10);
};

test('every view, at three sizes, light and dark: readable, with names; kept as pictures', async () => {
  const sizes = [[1280, 800], [1920, 1080], [900, 700]];
  for (const theme of ['light', 'dark']) {
    const page = await open(live.address, { theme });
    await page.waitForSelector('.row');
    for (const [width, height] of sizes) {
      await page.setViewportSize({ width, height });
      for (const view of ['functions', 'graph', 'flame', 'source', ...(width === 1280 ? ['threads', 'oscalls', 'coverage', 'run'] : [])]) {
        await page.evaluate((v) => (location.hash = new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))), view: v, file: '' })), view);
        await settled(page);
        assert.deepEqual(await page.evaluate(accessible), [], `${view} ${theme}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view}: wider than the window`);
        await shot(page, `${view}-${width}-${theme}`);
      }
    }
    assert.deepEqual(page.wrong, []);
  }
});

test('two runs: changes apart, coloured graph and flame graph', async () => {
  run(weir, 'profile', '-q', '--paths=full', '-o', 'other.weir', '--', './demo', 'x');
  const server = await view('other.weir', '--diff', 'demo.weir');
  for (const address of [server.address, 'file://' + join(work, 'other.html')]) {
    if (address.startsWith('file')) run(weir, 'export', 'other.weir', '--diff', 'demo.weir', '--format', 'html', '-o', 'other.html');
    const page = await open(address + '#view=changes');
    await page.waitForSelector('.quarters .row');
    const list = (name) => page.locator('.calls', { has: page.locator('h3', { hasText: name }) });
    assert.match(await list('Worse').innerText(), /fibonacci/);
    assert.match(await list('Better').innerText(), /parse/);
    assert.doesNotMatch(await list('Worse').innerText(), /parse\(/);
    assert.match(await page.locator('.view .bar').innerText(), /; its code: .* cycles[^]*The commands differ: before it was \.\/demo/);
    await page.keyboard.press('2');
    await drawn(page);
    assert.ok((await page.locator('#river .node.worse').count()) > 0 && (await page.locator('#river .node.better').count()) > 0);
    assert.equal(await page.locator('#river > .arc:not(.worse, .better, .same, .folded)').count(), 0, 'blue is what shrank');
    const strengths = await page.locator('#river .node.worse .node-box').evaluateAll((all) => all.map((b) => Number(getComputedStyle(b).strokeOpacity)));
    assert.ok(Math.min(...strengths) < 1, 'small changes have faint borders');
    await shot(page, 'diff-graph');
    await page.keyboard.press('3');
    await page.locator('canvas').waitFor();
    await page.getByRole('radio', { name: 'Before' }).click();
    await shot(page, 'diff-flame');
    await page.keyboard.press('9');
    assert.match(await page.locator('.view.run').innerText(), /Compared with\s+demo\.weir: \.\/demo[^]*the commands differ/);
    assert.deepEqual(page.wrong, []);
  }
  await server.stop();
});

test('names that hurt are text; a name of 10,000 characters; a run that was cut short', async () => {
  run(fixture, 'rich', 'rich.weir');
  const server = await view('rich.weir');
  const page = await open(server.address + '#view=functions');
  await page.waitForSelector('.row');
  assert.match((await names(page)).join('\n'), /<script>alert\(1\)<\/script>/);
  await page.fill('#find-here', 'nnnn');
  await row(page, 'nnnn').click();
  await page.waitForFunction(() => document.querySelector('.full-name').textContent.length === 10000);
  assert.match(await page.locator('.quality').innerText(), /cut short/);
  for (const view of ['graph', 'flame', 'source']) {
    await page.evaluate((v) => (location.hash = `view=${v}&fn=5&min=0`), view);
    await settled(page);
    await shot(page, `rich-${view}`);
  }
  assert.equal(await page.locator('script:not([type])').count(), 0);
  assert.deepEqual(page.wrong, []);
  await server.stop();
});

test('sources that are missing, or changed since the run, are told by their hash', async () => {
  writeFileSync(join(work, 'changes.cc'), 'int main() {\n  volatile int s = 0;\n  for (int i = 0; i < 100; i++) s += i;\n}\n');
  run('g++', '-g', '-o', 'changes', join(work, 'changes.cc'));
  run(weir, 'profile', '-q', '-o', 'changes.weir', '--', './changes');
  const server = await view('changes.weir');
  const note = async () => {
    const page = await open(server.address + '#view=functions&regex=1&filter=%5Emain%24');
    await row(page, 'main').click();
    await page.keyboard.press('4');
    await page.waitForSelector('.listing code');
    const text = (await page.locator('.note').allInnerTexts()).join();
    await page.close();
    return text;
  };
  assert.equal(await note(), '');
  appendFileSync(join(work, 'changes.cc'), '// more\n');
  assert.match(await note(), /has changed since the run.*CRC-32 [0-9a-f]{8}/);
  renameSync(join(work, 'changes.cc'), join(work, 'moved.cc'));
  assert.match(await note(), /is not found here.*CRC-32 [0-9a-f]{8}.*--source-map/);
  await server.stop();
});

test('without call paths the flame graph says what to type', async () => {
  run(weir, 'profile', '-q', '-o', 'callers.weir', '--', './demo');
  const server = await view('callers.weir');
  const page = await open(server.address + '#view=flame');
  assert.match(await page.locator('.hint').innerText(), /weir profile --paths=full -- \.\/demo/);
  await server.stop();
});

test('calls without a place in the table of call paths are told where they are missing', async () => {
  copyFileSync(join(work, 'demo.weir'), join(work, 'full.weir'));
  run('sqlite3', 'full.weir', 'UPDATE context SET calls = 0 WHERE id IN (SELECT id FROM context ORDER BY calls DESC LIMIT 1)');
  const server = await view('full.weir');
  const page = await open(server.address + '#view=flame');
  const banner = page.locator('.view .banner', { hasText: /[\d,]+ of [\d,]+ calls found no place in the table of call paths/ });
  await banner.waitFor();
  await page.keyboard.press('2');
  await drawn(page);
  assert.equal(await banner.count(), 0, 'who called whom is known of all');
  await page.keyboard.press('r');
  await banner.waitFor();
  await shot(page, 'missing-calls');
  assert.deepEqual(page.wrong, []);
  await server.stop();
});

test('a profile that is replaced while it is open; a second viewer', async () => {
  copyFileSync(join(work, 'demo.weir'), join(work, 'new.weir'));
  const [server, second] = await Promise.all([view('new.weir'), view('new.weir')]);
  const page = await open(server.address);
  const other = await open(second.address);
  await page.waitForSelector('.row');
  await other.waitForSelector('.row');
  run(weir, 'profile', '-q', '-o', 'new.weir', '--', 'true');
  await page.getByText('The profile was written anew').waitFor();
  assert.match(await page.locator('.command').innerText(), /demo/, 'the old one is still whole');
  await page.getByRole('button', { name: 'Show the new one' }).click();
  await page.waitForFunction(() => document.querySelector('.command')?.textContent === 'true');
  await server.stop();
  await other.keyboard.press('9');
  assert.match(await other.locator('.view.run').innerText(), /demo/);
  await second.stop();
});

test('a hundred thousand functions, a million call paths: the list, the graph and the flame graph stay quick', async () => {
  run(fixture, 'large', '100000', '200000', '1000000', 'large.weir');
  const begin = Date.now();
  const server = await view('large.weir');
  const page = await open(server.address + '#view=functions');
  await page.waitForSelector('.row');
  const first = Date.now() - begin;
  await page.locator('.table .body').first().focus();
  await page.keyboard.press('End');
  await page.waitForFunction(() => [...document.querySelectorAll('.view .row.current')].some((r) => r.getAttribute('aria-rowindex') === '100001' && /Class/.test(r.textContent)));
  await page.fill('#find-here', 'Class777');
  await page.waitForFunction(() => document.querySelector('.bar [role=status]').textContent === '111 functions match');
  await page.locator('#find-here').blur();
  const times = {};
  for (const [key, what] of [['3', 'canvas'], ['2', '#river .node']]) {
    const t = Date.now();
    await page.keyboard.press(key);
    await page.waitForSelector(what);
    times[what] = Date.now() - t;
    await shot(page, `large-${key}`);
  }
  console.log(`large: first view ${first} ms, flame graph ${times.canvas} ms, graph ${times['#river .node']} ms`);
  assert.ok(first < 20000 && times.canvas < 20000, 'slow');
  run(fixture, 'large', '20000', '20000', '20000', 'big.weir');
  run(weir, 'export', 'big.weir', '--format', 'html', '-o', 'big.html');
  const file = await open('file://' + join(work, 'big.html'));
  await file.waitForSelector('.row');
  assert.match(await file.locator('.banner').innerText(), /holds [\d,]+ of 20,000 functions/);
  assert.deepEqual([...page.wrong, ...file.wrong], []);
  await server.stop();
});

test('an empty profile, and one that is cut short, newer, or something else', async () => {
  run(weir, 'profile', '-q', '-o', 'empty.weir', '--', 'true');
  run('sqlite3', 'empty.weir', 'DELETE FROM function_count; DELETE FROM call_count; DELETE FROM block_count; DELETE FROM context; DELETE FROM thread; DELETE FROM process;');
  const server = await view('empty.weir');
  for (const view of ['functions', 'graph', 'flame', 'source', 'threads', 'run']) {
    const page = await open(server.address + '#view=' + view);
    await settled(page);
    assert.deepEqual(page.wrong, [], view);
    await shot(page, `empty-${view}`);
  }
  await server.stop();
  const says = async (file, pattern, ...options) => assert.rejects(view(file, ...options), (e) => pattern.test(e.message) && e.status === 125);
  writeFileSync(join(work, 'cut.weir'), readFileSync(join(work, 'demo.weir')).subarray(0, 100000));
  await says('cut.weir', /cut short/);
  copyFileSync(join(work, 'empty.weir'), join(work, 'newer.weir'));
  run('sqlite3', 'newer.weir', 'PRAGMA user_version = 99');
  await says('newer.weir', /newer Weir.*update/);
  copyFileSync(join(work, 'empty.weir'), join(work, 'kind.weir'));
  run('sqlite3', 'kind.weir', "UPDATE weir SET kind = 'soup'");
  await says('kind.weir', /holds 'soup'/);
  await says('none.weir', /No such file/);
  const port = new URL(live.address).port;
  await says('demo.weir', /port \d+ is in use: give another/, '--port', port);
});

test('the port stays the same where it is free', async () => {
  const known = new Set();
  for (let i = 0; i < 3 && !known.has('8347'); i++) {
    const server = await view('demo.weir');
    known.add(new URL(server.address).port);
    if (await fetch('http://127.0.0.1:8347/').then(() => true, () => false)) known.add('8347'); // (another has it)
    await server.stop();
  }
  assert.ok(known.has('8347'), [...known].join());
});

test('only who knows the address gets an answer', async () => {
  const { origin, host } = new URL(live.address);
  assert.equal((await fetch(origin + '/')).status, 404);
  assert.equal((await fetch(origin + '/q/summary')).status, 404);
  assert.equal((await fetch(live.address + 'q/summary')).status, 200);
  assert.equal((await fetch(live.address + 'q/nonsense')).status, 400);
  assert.equal((await fetch(live.address + 'q/file?path=/etc/passwd')).status, 400, 'files that the profile does not name');
  const { request } = await import('node:http');
  const foreign = await new Promise((resolve) => request(live.address, { headers: { Host: 'example.com' } }, (r) => resolve(r.statusCode)).end());
  assert.equal(foreign, 403, host);
});

test('a sampled profile: samples, and no calls', async (t) => {
  try {
    run(weir, 'sample', '-q', '-o', 'sampled.weir', '--', './demo', 'x');
  } catch (e) {
    return t.skip('no sampling here: ' + e.message);
  }
  const server = await view('sampled.weir', ...sourceMap);
  const page = await open(server.address + '#view=functions');
  await settled(page);
  assert.match(await page.locator('.run-line').innerText(), /samples?/);
  assert.equal(await page.getByRole('button', { name: 'Calls', exact: true }).count(), 0);
  for (const key of ['2', '3', '4', '9']) {
    await page.keyboard.press(key);
    await settled(page);
  }
  assert.deepEqual(page.wrong, []);
  await server.stop();
});

test('callers and callees by keys: a mark moves, Enter goes there', async () => {
  const page = await open(live.address + '#view=functions&filter=read_all');
  await row(page, 'read_all').click();
  await detailIs(page, 'read_all(int)');
  const callees = page.getByRole('grid', { name: 'Callees' });
  const name = await callees.locator('.row .name').nth(1).getAttribute('title');
  await callees.locator('.body').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await callees.locator('.row.current[aria-rowindex="3"]').waitFor();
  assert.equal(await detail(page), 'read_all(int)', 'to move is not to go');
  await page.keyboard.press('Enter');
  await detailIs(page, name);
  await page.keyboard.press('[');
  await detailIs(page, 'read_all(int)');
  assert.deepEqual(page.wrong, []);
});

for (const kind of ['live', 'file']) {
  const start = (hash = '', more = {}) => open((kind === 'live' ? live.address : exported) + hash, more);

  test(`${kind}: who called a function, as a flame graph; an image keeps its colour`, async () => {
    const page = await start('#view=functions&filter=sum_of');
    await row(page, 'sum_of_squares').click();
    await detailIs(page, 'sum_of_squares');
    const share = (await page.locator('.facts').innerText()).match(/Total\s+([\d.]+ %)/)[1];
    await page.getByRole('button', { name: 'Callers flame' }).click();
    await page.getByText('Callers of sum_of_squares(int)').waitFor();
    await page.locator('canvas').click({ trial: true });
    await page.keyboard.press('ArrowUp');
    await page.waitForFunction((s) => /^sum_of_squares/.test(document.querySelector('.caption').textContent) && document.querySelector('.caption').textContent.includes(s), share);
    await page.keyboard.press('ArrowUp'); // to the caller with the most of it
    await page.waitForFunction(() => !/^sum_of_squares/.test(document.querySelector('.caption').textContent));
    await page.keyboard.press('0');
    const frames = () => page.locator('canvas').getAttribute('aria-label');
    const other = (than) => page.waitForFunction((t) => document.querySelectorAll('.swatches > span').length > 1 && document.querySelector('canvas')?.getAttribute('aria-label') !== t, than);
    await other('');
    const colours = () => page.locator('.swatches > span').evaluateAll((all) => all.map((s) => [s.textContent, s.querySelector('i').style.background]));
    const reversed = await colours();
    const before = await frames();
    await page.getByRole('radio', { name: 'From the start' }).click();
    await other(before);
    const forward = new Map(await colours());
    assert.ok(reversed.length > 1);
    for (const [image, colour] of reversed) if (forward.has(image)) assert.equal(forward.get(image), colour, image);
    assert.deepEqual(page.wrong, []);
  });

  test(`${kind}: the graph begins at its root; shares of a virtual root are at most 100 %; the box is dragged from where it is grasped`, async () => {
    const page = await start('#view=graph');
    await drawn(page);
    const inSight = await page.evaluate(() => {
      const pane = document.querySelector('.river').getBoundingClientRect();
      const inside = (b) => b.left >= pane.left && b.right <= pane.right && b.top >= pane.top && b.bottom <= pane.bottom;
      const roots = [...document.querySelectorAll('#river .node')].filter((n) => /100\.00 %|_start/.test(n.textContent));
      const text = document.querySelector('#river .node text').getBoundingClientRect().height;
      return { root: roots.some((n) => inside(n.getBoundingClientRect())), at: inside(document.querySelector('#river .node.at').getBoundingClientRect()), text };
    });
    assert.ok(inSight.root && inSight.at, JSON.stringify(inSight));
    assert.ok(inSight.text >= 12, `names ${inSight.text} pixels high`);
    const box = () => page.locator('#river').getAttribute('viewBox');
    const before = await box();
    const frame = await page.locator('.overview .box').boundingBox();
    const pane = await page.locator('.overview svg').boundingBox();
    const [x, y] = [Math.max(frame.x, pane.x) + 6, Math.max(frame.y, pane.y) + 6];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.up();
    const [a, b] = [before, await box()].map((t) => t.split(' ').map(Number));
    assert.ok(a.every((n, i) => Math.abs(n - b[i]) < 0.01), `${a} is not ${b}`);
    await page.evaluate(() => (location.hash += '&min=0&length=60'));
    await drawn(page);
    const node = page.locator('#river .node', { hasText: '_dl_start' }).first();
    await node.dispatchEvent('click');
    await page.keyboard.press('r');
    // Drawn anew, with as many as the filter says there are below the root, up to the most that are drawn.
    await page.waitForFunction(() => Math.min(300, Number(/(\d+) function/.exec(document.querySelector('.filter label').textContent)[1])) === document.querySelectorAll('#river .node').length);
    assert.equal(await page.locator('#river .is-root').count(), 1);
    const shares = await page.locator('#river .node tspan.datum').allInnerTexts();
    assert.ok(shares.length > 1);
    for (const share of shares) assert.ok(!/[\d.]/.test(share) || parseFloat(share.replace(/[≤<]/g, '')) <= 100, share);
    assert.deepEqual(page.wrong, []);
  });
}

test('an exported file invites to nothing that it does not hold', async () => {
  const page = await open(exported + '#view=threads&thread=1');
  await page.waitForSelector('.view .row');
  assert.doesNotMatch(await page.locator('.view .bar').innerText(), /Select one/);
  await page.locator('.view .row').nth(1).click();
  for (const key of ['2', '3', '1']) {
    await page.keyboard.press(key);
    await settled(page);
    assert.equal(await page.locator('.failed').count(), 0, key);
  }
  assert.deepEqual(page.wrong, []);
});

test('one thread is named, and compared where the run before has one of its name', async () => {
  run(weir, 'profile', '-q', '--paths=full', '-o', 'third.weir', '--', './demo', 'x');
  const server = await view('third.weir', '--diff', 'demo.weir');
  const page = await open(server.address + '#view=threads');
  const second = page.locator('.view .row').nth(1);
  await second.waitFor();
  const titles = await page.locator('.view [role=columnheader]').allInnerTexts();  // (there are more of them where anything waited)
  const tid = await second.locator('.cell').nth(titles.findIndex((title) => /^tid/i.test(title))).innerText();
  await second.click();
  await page.locator('.banner', { hasText: `Only thread demo ${tid}` }).waitFor();
  await page.keyboard.press('1');
  await page.waitForFunction(() => /functions in this thread/.test(document.querySelector('.bar [role=status]')?.textContent));
  const compared = /; compared with/.test(await page.locator('.banner').innerText());
  assert.equal(await page.getByRole('button', { name: 'Δ self' }).count(), compared ? 1 : 0);
  await page.keyboard.press('5');
  await page.waitForSelector('.quarters');
  assert.deepEqual(page.wrong, []);
  await server.stop();
});

test('a new profile that cannot be opened is told of', async () => {
  copyFileSync(join(work, 'demo.weir'), join(work, 'bad.weir'));
  const server = await view('bad.weir');
  const page = await open(server.address);
  await page.waitForSelector('.row');
  writeFileSync(join(work, 'bad.new'), 'not a profile');
  renameSync(join(work, 'bad.new'), join(work, 'bad.weir'));
  await page.getByRole('button', { name: 'Show the new one' }).click();
  await page.getByText('The new profile cannot be shown').waitFor();
  assert.deepEqual(page.wrong, []);
  await server.stop();
  await page.keyboard.press('7');
  await page.locator('.failed', { hasText: 'open the address that it prints' }).waitFor();
});

test('data on the hottest nodes can be read, light and dark', async () => {
  for (const theme of ['light', 'dark']) {
    const page = await open(live.address + '#view=graph&min=0&left=calls', { theme });
    await drawn(page);
    const least = await page.evaluate(() => {
      const rgb = (c) => c.match(/[\d.]+/g).map(Number);
      const light = (c) => c.slice(0, 3).map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
      return Math.min(...[...document.querySelectorAll('#river .node')].map((n) => {
        const heat = getComputedStyle(n.querySelector('.node-heat'));
        const [over, under, part] = [rgb(heat.fill), rgb(getComputedStyle(n.querySelector('.node-box')).fill), Number(heat.opacity)];
        const ground = light(over.map((v, i) => v * part + under[i] * (1 - part)));
        return Math.min(...[...n.querySelectorAll('tspan')].map((t) => light(rgb(getComputedStyle(t).fill))).map((ink) => (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05)));
      }));
    });
    assert.ok(least >= 4.5, `${theme}: ${least}`);
  }
});

test('captions count all functions; keys in a list leave no trail; keys wait behind the list of keys; `f` finds', async () => {
  run(fixture, 'large', '3000', '3000', '3000', 'some.weir');
  const server = await view('some.weir');
  const page = await open(server.address + '#view=graph&min=0');
  assert.equal(await drawn(page), 300);
  assert.match(await page.locator('.river-pane .caption').innerText(), /300 functions of 3,000, .*2,700 more above the filter/);
  assert.match(await page.locator('.filter label').innerText(), /3,000 functions/);
  await page.keyboard.press('1');
  await page.waitForSelector('.view .row');
  const entries = await page.evaluate(() => history.length);
  for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowDown');
  assert.equal(await page.evaluate(() => history.length), entries);
  await page.keyboard.press('?');
  await page.keyboard.press('2');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('nav [aria-current]').innerText(), 'Functions');
  for (const key of ['2', '3', '4', '6', '8']) {
    await page.keyboard.press(key);
    await page.locator('#find-here').waitFor();
    await page.keyboard.press('f');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'find-here', key);
    await page.keyboard.press('Escape');
  }
  assert.deepEqual(page.wrong, []);
  await server.stop();
});

test('without a sample, no view speaks of what ran', async (t) => {
  writeFileSync(join(work, 'dead.s'), '.globl _start\n_start: mov $60, %eax\nxor %edi, %edi\nsyscall\n');
  run('gcc', '-nostdlib', '-static', '-o', 'dead', 'dead.s');
  try {
    run(weir, 'sample', '-q', '-o', 'dead.weir', '--', './dead');
  } catch (e) {
    return t.skip('no sampling here: ' + e.message);
  }
  if (JSON.parse(run(weir, 'report', 'dead.weir', 'functions', '--format', 'json')).functions.length) return t.skip('it was sampled');
  const server = await view('dead.weir');
  const page = await open(server.address + '#view=functions');
  for (const key of ['1', '2', '3']) {
    await page.keyboard.press(key);
    await page.locator('.view', { hasText: 'No sample was taken.' }).waitFor();
  }
  await page.keyboard.press('9');
  assert.match(await page.locator('.view.run').innerText(), /Call paths\s+none/);
  assert.deepEqual(page.wrong, []);
  await server.stop();
});

test('samples are no counts: no coverage, no calls, and how good they are', async (t) => {
  try {
    run(weir, 'sample', '-q', '-F', '5000', '-o', 'samples.weir', '--', './demo', 'x');
  } catch (e) {
    return t.skip('no sampling here: ' + e.message);
  }
  const server = await view('samples.weir', ...sourceMap);
  const page = await open(server.address + '#view=functions');
  await page.waitForFunction(() => /functions? in samples/.test(document.querySelector('.bar [role=status]')?.textContent));
  assert.equal(await page.locator('nav').getByRole('button', { name: 'Coverage' }).count(), 0);
  assert.match(await page.locator('.quality').innerText(), /samples?, .*lost/);
  await page.keyboard.press('9');
  const text = await page.locator('.view.run').innerText();
  assert.match(text, /cut off[^]*guessed[^]*lost/);
  assert.doesNotMatch(text, /OS calls|everything that ran was seen/);
  assert.deepEqual(page.wrong, []);
  await server.stop();
});
