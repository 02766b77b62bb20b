// The pictures of the README, from real programs: sqlite3 over the script of `./dev demo`, and a C++ program with its source.
//
//   ./dev pictures
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { execSync } from 'node:child_process';
import { join } from 'node:path';
import { drawn, end, open, repository, run, settled, view, weir, work } from './harness.mjs';

const out = join(repository, 'docs/pictures');
mkdirSync(out, { recursive: true });
const keep = (page, name) => page.screenshot({ path: join(out, name + '.png') });
const size = { width: 1280, height: 720 };

writeFileSync(join(work, 'demo.sql'), `
create table words(id integer primary key, word text, length integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000)
  insert into words select i, hex(i * 7919 % 30011), length(hex(i)) from n;
create index by_word on words(word);
select count(*) from words a join words b on a.word = b.word where a.id < 5000;`);
execSync(`'${weir}' profile -q --paths=full -o sqlite3.weir -- sqlite3 :memory: < demo.sql`, { cwd: work });
const sqlite = await view('sqlite3.weir');
const graph = await open(sqlite.address + '#view=graph', size);
await drawn(graph);
await keep(graph, 'graph');
const flame = await open(sqlite.address + '#view=flame', { ...size, theme: 'dark' });
await flame.locator('canvas').waitFor();
await keep(flame, 'flame');

copyFileSync(join(repository, 'tests/bench/programs/mix.cc'), join(work, 'mix.cc'));
run('g++', '-O1', '-g', '-o', 'mix', join(work, 'mix.cc'));
run(weir, 'profile', '-q', '--paths=full', '-o', 'mix.weir', '--', './mix');
const mix = await view('mix.weir');
const source = await open(mix.address + '#view=functions&regex=1&filter=%5Emain%24', size);
await source.locator('.row .name', { hasText: /^main$/ }).first().click();
await source.keyboard.press('4');
await source.getByRole('radio', { name: 'Source' }).click();
await source.waitForSelector('.listing code');
await settled(source);
await keep(source, 'source');
await end();
