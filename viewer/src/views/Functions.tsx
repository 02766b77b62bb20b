// V1: all functions, those with the most self time first.
import { useSignal } from '@preact/signals';
import { useCallback, useEffect, useMemo, useRef } from 'preact/hooks';
import { ask, useAnswer } from '../data/ask';
import type { FunctionPage, FunctionRow } from '../data/types';
import { plural, withCommas } from '../format';
import { get, moveTo, select, selected, summary, thread, tune } from '../state';
import { Table } from '../table/Table';
import { functionColumns, nothingRan } from './columns';
import { Failed, Waiting } from './Waiting';

const pageSize = 200;

function query() {
  return {
    sort: get('sort', 'self'),
    ascending: get('asc') === '1',
    filter: get('filter'),
    regex: get('regex') === '1',
    thread: thread.value,
  };
}

export function Functions() {
  const seen = useSignal<[number, number]>([0, 40]);
  const asked = query();
  const key = JSON.stringify(asked);
  const head = useAnswer<FunctionPage>(() => ({ name: 'functions', params: { ...query(), offset: 0, limit: pageSize } }));
  const place = useAnswer<FunctionPage>(() =>
    selected.value === null ? null : { name: 'functions', params: { ...query(), offset: 0, limit: 1, locate: selected.value } });
  const columns = useMemo(functionColumns, [summary.value]);
  const onSeen = useCallback((first: number, last: number) => (seen.value = [first, last]), []);
  const at = useSignal<number | null>(null); // of the row that was selected last: the server need not be asked
  const count = head.value?.count ?? 0;
  const [first, last] = seen.value;

  const pages = new Map<number, FunctionRow[] | undefined>();
  for (let p = Math.floor(first / pageSize); p * pageSize < Math.min(last, count); p++)
    pages.set(p, p === 0 ? head.value?.rows : ask<FunctionPage>('functions', { ...asked, offset: p * pageSize, limit: pageSize }).value.value?.rows);
  const row = (i: number) => pages.get(Math.floor(i / pageSize))?.[i % pageSize];

  const onSort = (column: string) => {
    const same = column === get('sort', 'self');
    tune({ sort: column, asc: same && get('asc') !== '1' ? '1' : null });
  };
  return (
    <section class="view" aria-label="Functions">
      <Filter count={count} />
      {head.error ? (
        <Failed>{head.error}</Failed>
      ) : (
        <Table
          key={key}
          label="Functions"
          columns={columns}
          count={count}
          row={row}
          onSeen={onSeen}
          current={at.value !== null && row(at.value)?.id === selected.value ? at.value : (place.value?.position ?? null)}
          onSelect={(f, i) => ((at.value = i), select(f.id))}
          onMove={(f, i) => ((at.value = i), moveTo(f.id))}
          onOpen={(f) => select(f.id, { view: 'source' })}
          sort={asked.sort}
          ascending={asked.ascending}
          onSort={onSort}
          rowClass={(f) => (f.self === 0 && f.total === 0 ? 'faint' : '')}
          empty={head.value ? (get('filter') ? 'No name matches the filter.' : nothingRan()) : <Waiting since={head.since} what="Reading functions" />}
          autoFocus
        />
      )}
    </section>
  );
}

function Filter({ count }: { count: number }) {
  const text = useSignal(get('filter'));
  const wait = useRef(0);
  const set = (value: string) => {
    text.value = value;
    clearTimeout(wait.current);
    wait.current = setTimeout(() => tune({ filter: value }), 120) as unknown as number;
  };
  useEffect(() => () => clearTimeout(wait.current), []);
  const { functions_run, functions_known, calls_known } = summary.value;
  return (
    <div class="bar">
      <input id="find-here" type="search" placeholder="Filter names   f" aria-label="Filter functions by name" value={text.value} onInput={(e) => set(e.currentTarget.value)} />
      <label class="check">
        <input type="checkbox" checked={get('regex') === '1'} onChange={(e) => tune({ regex: e.currentTarget.checked ? '1' : null })} /> regular expression
      </label>
      <span class="faint" role="status">
        {get('filter') ? `${plural(count, 'function')} ${count === 1 ? 'matches' : 'match'}` : thread.value ? `${plural(count, 'function')} in this thread` : calls_known ? `${withCommas(functions_run)} of ${plural(functions_known, 'function')} ran` : `${plural(functions_run, 'function')} in samples`}
      </span>
    </div>
  );
}
