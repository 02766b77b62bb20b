import { describe, expect, it, vi } from 'vitest';
import { functionPage, openSource, question } from '../src/data/source';
import { splitLines } from '../src/code/highlight';
import type { FunctionPage, FunctionRow } from '../src/data/types';

const row = (id: number, name: string, self: number, total: number) => ({ id, name, self, total, file: null, image: 'a' }) as FunctionRow;
const all: FunctionPage = { count: 3, first: 0, position: null, rows: [row(1, 'main', 5, 100), row(2, 'Parse', 50, 60), row(3, 'parser::next', 20, 20)] };
const ids = (params: Parameters<typeof functionPage>[1]) => functionPage(all, params).rows.map((r) => r.id);

describe('functions of an exported file', () => {
  it('are sorted, filtered and cut as the server does it', () => {
    expect(ids({})).toEqual([2, 3, 1]);
    expect(ids({ sort: 'total' })).toEqual([1, 2, 3]);
    expect(ids({ sort: 'name' })).toEqual([2, 1, 3]);
    expect(ids({ sort: 'self', ascending: true })).toEqual([1, 3, 2]);
    expect(ids({ filter: 'pars' })).toEqual([2, 3]);
    expect(ids({ filter: '^parse$', regex: true })).toEqual([2]);
    expect(ids({ offset: 1, limit: 1 })).toEqual([3]);
    expect(functionPage(all, { locate: 1 }).position).toBe(2);
    expect(() => functionPage(all, { filter: '(', regex: true })).toThrow(/not a regular expression/);
  });
  it('have one name for one question', () => {
    expect(question('function', { thread: '', id: 5, regex: false })).toBe('function?id=5');
    expect(question('a', { z: 1, b: true })).toBe('a?b=1&z=1');
  });
});

describe('answers of the server', () => {
  it('are errors where they cannot be read, whatever their status', async () => {
    vi.stubGlobal('document', { getElementById: () => null });
    for (const status of [200, 500]) {
      vi.stubGlobal('fetch', async () => new Response('{"cut', { status }));
      await expect((await openSource()).ask('summary')).rejects.toThrow(`cannot be read (status ${status})`);
    }
    vi.unstubAllGlobals();
  });
});

describe('colours of source', () => {
  it('are opened anew on each line', () => {
    expect(splitLines('a<span class="c">/*\nb*/</span>c')).toEqual(['a<span class="c">/*</span>', '<span class="c">b*/</span>c']);
  });
});
