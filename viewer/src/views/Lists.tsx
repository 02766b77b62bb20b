// Threads, OS calls, coverage and changes: one table each.
import { useSignal } from '@preact/signals';
import { source, useAnswer } from '../data/ask';
import type { Changes, CoverageRow, FunctionRow, OsTable, ThreadRow } from '../data/types';
import { baseName, commandLine, percent, plural, printable, seconds, shortName, threadsAndProcesses, withCommas, withUnit } from '../format';
import { comparing, get, go, moveTo, select, selected, summary, thread, tune } from '../state';
import { amount, Change, Count, Share, Time, Waited } from '../table/figures';
import { Table, type Column } from '../table/Table';
import { FunctionName, was } from './columns';
import { With } from './Waiting';

// What `f` goes to: rows without these letters go.
function Filter({ name, what }: { name: string; what: string }) {
  return <input id="find-here" type="search" placeholder={`Filter ${what}   f`} aria-label={`Filter ${what}`} value={get(name)} onInput={(e) => tune({ [name]: e.currentTarget.value })} />;
}

function matching<Row>(rows: Row[], name: string, textOf: (row: Row) => string): Row[] {
  const text = get(name).toLowerCase();
  return text === '' ? rows : rows.filter((r) => textOf(r).toLowerCase().includes(text));
}

// Rows by the column whose head was clicked: the largest first, names from A; by another click, the other way round.
function ordered<Row>(rows: Row[], name: string, columns: Column<Row>[]) {
  const sort = get(name).replace('-', '');
  const ascending = get(name).startsWith('-');
  const value = columns.find((c) => c.key === sort)?.value;
  const first = (a: number | string, b: number | string) => (typeof a === 'number' ? Number(b) - a : a < b ? -1 : a > b ? 1 : 0);
  const onSort = (key: string) => tune({ [name]: key === get(name) ? '-' + key : key });
  return { rows: value ? [...rows].sort((a, b) => (ascending ? -1 : 1) * first(value(a), value(b))) : rows, head: { sort, ascending, onSort } };
}

export function Threads() {
  const mark = useSignal<number | null>(null); // in a file, where a thread cannot be looked at alone
  const answer = useAnswer<{ threads: ThreadRow[] }>(() => ({ name: 'threads' }));
  const current = thread.value;
  const { unit, os_time, waited } = summary.value;
  return (
    <section class="view" aria-label="Threads">
      <With answer={answer} what="Reading threads">
        {({ threads: all }) => {
          const threads = matching(all, 'threads', (t) => `${t.name} ${t.pid} ${t.tid} ${t.command}`);
          const begin = Math.min(...all.map((t) => t.started || Infinity));
          const end = Math.max(...all.map((t) => t.finished));
          const columns: (Column<ThreadRow> | false)[] = [
            { key: 'share', title: 'Share', width: '6em', right: true, cell: (t) => <Share of={t.cycles + t.os_time} kind="total" /> },
            { key: 'cycles', title: os_time ? `Code, ${unit}` : unit, width: '7em', spare: 1, right: true, cell: (t) => <Time of={t.cycles} /> },
            os_time > 0 && { key: 'os', title: 'OS time', width: '6em', spare: 2, right: true, cell: (t) => <Time of={t.os_time} /> },
            waited > 0 && { key: 'waited', title: 'Waited', about: 'in OS calls, off the processor', width: '6em', spare: 2, right: true, cell: (t) => <Waited of={t.waited} /> },
            { key: 'functions', title: 'Functions', width: '6em', spare: 5, right: true, cell: (t) => <Count of={t.functions} /> },
            { key: 'pid', title: 'pid', width: '5em', spare: 3, right: true, cell: (t) => t.pid },
            { key: 'tid', title: 'tid', width: '5em', right: true, cell: (t) => t.tid || 'others' },
            { key: 'name', title: 'Name', width: '9em', cell: (t) => printable(t.name) },
            { key: 'when', title: 'Process ran', width: '10em', spare: 6, cell: (t) => <When t={t} begin={begin} end={end} /> },
            { key: 'ended', title: 'Ended', width: '7em', spare: 4, cell: (t) => t.ended },
            { key: 'command', title: 'Command', width: 'minmax(12em, 1fr)', cell: (t) => <span class="name" title={t.command}>{t.command}</span> },
          ];
          return (
            <>
              <div class="bar">
                <Filter name="threads" what="threads" />
                <span>
                  {threadsAndProcesses(summary.value)}.{' '}
                  {all.length > 1 && (source.live ? 'Select one to see its time alone in every view.' : 'This file has their sums; weir view shows each alone.')}
                </span>
                {current && <button onClick={() => go({ thread: null })}>All threads</button>}
              </div>
              <Table
                label="Threads"
                columns={columns.filter((c) => c !== false)}
                count={threads.length}
                row={(i) => threads[i]}
                current={source.live ? threads.findIndex((t) => String(t.id) === current) : mark.value}
                onSelect={(t, i) => (source.live ? go({ thread: String(t.id) }) : (mark.value = i))}
                onMove={(t, i) => (source.live ? tune({ thread: String(t.id) }) : (mark.value = i))}
                onOpen={(t) => source.live && go({ thread: String(t.id), view: 'functions' })}
                empty={get('threads') ? 'No thread matches.' : 'No thread was seen.'}
                autoFocus
              />
            </>
          );
        }}
      </With>
    </section>
  );
}

function When({ t, begin, end }: { t: ThreadRow; begin: number; end: number }) {
  if (!t.started || end <= begin) return null;
  const left = (t.started - begin) / (end - begin);
  const width = Math.max(0.01, (t.finished - t.started) / (end - begin));
  return (
    <span class="when" title={seconds((t.finished - t.started) / 1e6)}>
      <i style={{ left: `${left * 100}%`, width: `${Math.min(1 - left, width) * 100}%` }} />
    </span>
  );
}

export function OsCalls() {
  const answer = useAnswer<OsTable>(() => ({ name: 'oscalls', params: { thread: thread.value } }));
  type Row = OsTable['oscalls'][number];
  const current = useSignal<Row | null>(null);
  const { unit, total, os_units_per_second, with_waits } = summary.value;
  const columns: Column<Row>[] = [
    { key: 'share', title: 'Share', about: 'of the program', width: '6em', right: true, value: (o) => o.time, cell: (o) => <Share of={o.time} /> },
    { key: 'time', title: `Time, ${unit}`, width: '7em', spare: 1, right: true, cell: (o) => <Time of={o.time} /> },
    { key: 'calls', title: 'Calls', width: '6em', right: true, value: (o) => o.calls, cell: (o) => <Count of={o.calls} /> },
    { key: 'errors', title: 'Errors', width: '5em', right: true, value: (o) => o.errors, cell: (o) => <Count of={o.errors} /> },
    { key: 'waited', title: 'Waited', about: 'what passed in them off the processor', width: '6em', spare: 3, right: true, value: (o) => o.waited, cell: (o) => <Waited of={o.waited} /> },
    { key: 'class', title: 'Class', about: 'timed: measured; determinate and fixed: by a table', width: '8.4em', spare: 2, value: (o) => o.class, cell: (o) => o.class },
    { key: 'name', title: 'Call', width: '10em', value: (o) => o.name, cell: (o) => <span class="name">{o.name}</span> },
    { key: 'by', title: 'Made by', width: 'minmax(14em, 1fr)', cell: (o) => <Makers row={o} /> },
  ];
  return (
    <section class="view" aria-label="OS calls">
      <With answer={answer} what="Reading OS calls">
        {({ oscalls: all }) => {
          const { rows, head } = ordered(matching(all, 'oscalls', (o) => `${o.name} ${o.class} ${o.by.map((f) => f.name).join(' ')}`), 'oscalls_by', columns);
          const sum = (key: 'calls' | 'time' | 'waited') => rows.reduce((n, o) => n + o[key], 0);
          return (
            <>
              <div class="bar">
                <Filter name="oscalls" what="OS calls" />
                <span>
                  {plural(sum('calls'), 'OS call')} took {amount(sum('time'))}, {percent(sum('time') / (total || 1))} of the program.
                  {sum('waited') > 0 && ` ${seconds(sum('waited') / (os_units_per_second || 1))} passed in them off the processor${with_waits ? '' : ', in no other time'}.`}
                </span>
              </div>
              <Table label="OS calls" columns={columns} count={rows.length} row={(i) => rows[i]} {...head} current={rows.indexOf(current.value!)} onSelect={(o) => (current.value = o)} onOpen={(o) => o.by[0] && select(o.by[0].id)} empty={all.length ? 'No OS call matches.' : 'No OS calls were made.'} autoFocus />
            </>
          );
        }}
      </With>
    </section>
  );
}

// Where threads waited, by function and OS call: measured seconds.
export function Waits() {
  const answer = useAnswer<OsTable>(() => ({ name: 'oscalls', params: { thread: thread.value } }));
  type Row = OsTable['oscalls'][number]['by'][number] & { call: string };
  const columns: Column<Row>[] = [
    { key: 'waited', title: 'Waited', width: '7em', right: true, value: (w) => w.waited, cell: (w) => <Waited of={w.waited} /> },
    { key: 'calls', title: 'Calls', width: '7em', right: true, value: (w) => w.calls, cell: (w) => <Count of={w.calls} /> },
    { key: 'each', title: 'A call', about: 'on average', width: '7em', spare: 1, right: true, value: (w) => w.waited / (w.calls || 1), cell: (w) => <Waited of={w.waited / (w.calls || 1)} /> },
    { key: 'call', title: 'OS call', width: '10em', value: (w) => w.call, cell: (w) => <span class="name">{w.call}</span> },
    { key: 'name', title: 'Function', width: 'minmax(14em, 1fr)', value: (w) => w.name, cell: (w, room) => <FunctionName name={w.name} room={room} /> },
  ];
  return (
    <section class="view" aria-label="Waits">
      <With answer={answer} what="Reading waits">
        {({ oscalls }) => {
          const all = oscalls.flatMap((o) => o.by.filter((f) => f.waited > 0).map((f) => ({ ...f, call: o.name }))).sort((a, b) => b.waited - a.waited);
          const { rows, head } = ordered(matching(all, 'waits', (w) => `${w.call} ${w.name}`), 'waits_by', columns);
          return (
            <>
              <div class="bar">
                <Filter name="waits" what="waits" />
                <span>What passed in OS calls while threads were off the processor, all of them together.</span>
                {source.live && <WithWaits />}
              </div>
              <Table label="Waits" columns={columns} count={rows.length} row={(i) => rows[i]} {...head} current={rows.findIndex((w) => w.id === selected.value)} onSelect={(w) => select(w.id)} onMove={(w) => moveTo(w.id)} onOpen={(w) => select(w.id)} empty={all.length ? 'No wait matches.' : 'Nothing was waited for.'} autoFocus />
            </>
          );
        }}
      </With>
    </section>
  );
}

// Adds it to the times of all views, or takes it out: the answers are other ones then, so that all is asked anew.
function WithWaits() {
  const { with_waits } = summary.value;
  const change = async () => {
    await source.ask('reload', { waits: with_waits ? '0' : '1' });
    location.reload();
  };
  return (
    <label>
      <input type="checkbox" checked={with_waits} onChange={change} /> in the times of all views
    </label>
  );
}

function Makers({ row }: { row: OsTable['oscalls'][number] }) {
  return (
    <>
      {row.by.slice(0, 3).map((f, i) => (
        <span key={f.id}>
          {i > 0 && ', '}
          <a href="#" class="name" title={f.name.slice(0, 500)} onClick={(e) => (e.preventDefault(), e.stopPropagation(), select(f.id))}>
            {shortName(f.name, 40)}
          </a>{' '}
          <span class="faint">({withCommas(f.calls)})</span>
        </span>
      ))}
      {row.by.length > 3 && <span class="faint">, {row.by.length - 3} more</span>}
    </>
  );
}

export function Coverage() {
  const answer = useAnswer<{ coverage: CoverageRow[] }>(() => ({ name: 'coverage', params: { thread: thread.value } }));
  const anywhere = thread.value ? ' in any thread' : '';
  const part = (run: number, all: number) => (all ? run / all : -1);
  const bar = (run: number, all: number) => (all ? <Share of={run} whole={all} kind="plain" /> : <span class="faint">–</span>);
  const columns: Column<CoverageRow>[] = [
    { key: 'functions', title: 'Functions', width: '6em', right: true, value: (c) => part(c.functions_run, c.functions), cell: (c) => bar(c.functions_run, c.functions) },
    { key: 'functions_', title: 'ran of', width: '8.6em', spare: 2, right: true, cell: (c) => <span class="faint">{c.functions ? `${withCommas(c.functions_run)} / ${withCommas(c.functions)}` : ''}</span> },
    { key: 'blocks', title: 'Blocks', about: `of functions that ran${anywhere}`, width: '6em', right: true, value: (c) => part(c.blocks_run, c.blocks), cell: (c) => bar(c.blocks_run, c.blocks) },
    { key: 'lines', title: 'Lines', about: `of functions that ran${anywhere}`, width: '6em', right: true, value: (c) => part(c.lines_run, c.lines), cell: (c) => bar(c.lines_run, c.lines) },
    { key: 'lines_', title: 'ran of', width: '7em', spare: 1, right: true, cell: (c) => <span class="faint">{c.lines ? `${withCommas(c.lines_run)} / ${withCommas(c.lines)}` : ''}</span> },
    { key: 'file', title: 'File', width: 'minmax(14em, 1fr)', value: (c) => c.file ?? c.image, cell: (c) => <span class="name" title={c.file ?? c.image}>{c.file ?? (c.image.startsWith('[') ? c.image : `[${baseName(c.image)}]`)}</span> },
    { key: 'image', title: 'Image', width: 'minmax(8em, 0.4fr)', spare: 3, value: (c) => baseName(c.image), cell: (c) => <span class="faint" title={c.image}>{baseName(c.image)}</span> },
  ];
  const current = useSignal<CoverageRow | null>(null);
  return (
    <section class="view" aria-label="Coverage">
      <With answer={answer} what="Adding up what ran">
        {({ coverage }) => {
          const { rows, head } = ordered(matching(programFirst(coverage), 'covered', (c) => c.file ?? c.image), 'covered_by', columns);
          const sum = (key: 'functions' | 'functions_run' | 'blocks' | 'blocks_run' | 'lines' | 'lines_run') => rows.reduce((n, r) => n + r[key], 0);
          const of = (run: number, all: number) => (all ? `${withCommas(run)} of ${withCommas(all)} (${percent(run / all)})` : 'none');
          return (
            <>
              <div class="bar">
                <Filter name="covered" what="files" />
                <span>
                  Ran{thread.value && ' in this thread'}: {of(sum('functions_run'), sum('functions'))} functions; of {thread.value ? 'those that ran in any' : 'these'} {of(sum('blocks_run'), sum('blocks'))} blocks, {of(sum('lines_run'), sum('lines'))} lines.
                </span>
              </div>
              <Table label="Coverage" columns={columns} count={rows.length} row={(i) => rows[i]} {...head} current={rows.indexOf(current.value!)} onSelect={(c) => (current.value = c)} onOpen={(c) => c.file && go({ view: 'source', file: c.file })} empty="No file matches." autoFocus />
            </>
          );
        }}
      </With>
    </section>
  );
}

// What one wrote comes before the libraries.
function programFirst(rows: CoverageRow[]): CoverageRow[] {
  const isLibrary = (c: CoverageRow) => /\.so(\.|$)|^\[/.test(baseName(c.image));
  return [...rows.filter((c) => !isLibrary(c)), ...rows.filter(isLibrary)];
}

// Regressions apart from improvements: what became worse never hides behind what became better.
export function ChangesView() {
  const answer = useAnswer<Changes>(() => ({ name: 'changes', params: { thread: comparing.value ? thread.value : '' } }));
  const { compared, total, cycles, command, sampling } = summary.value;
  if (!compared) return null;
  const fromTo = (before: number, now: number) => (now === before ? `the same ${amount(now)}` : <>{withUnit(before)} → {amount(now)}, <Change now={now} before={before} /> ({percent(now / (before || 1) - 1)})</>);
  const table = (label: string, about: string, all: FunctionRow[]) => {
    const rows = matching(all, 'changed', (f) => `${f.name} ${f.before?.name ?? ''}`);
    const columns: (Column<FunctionRow> | false)[] = [
      { key: 'change', title: 'Δ self', width: '6em', right: true, cell: (f) => <Change now={f.self} before={f.before?.self ?? 0} /> },
      { key: 'share', title: 'of before', about: 'share of the total of the run before', width: '5.4em', spare: 1, right: true, cell: (f) => <Share of={Math.abs(f.self - (f.before?.self ?? 0))} whole={compared.total} kind={f.self > (f.before?.self ?? 0) ? 'worse' : 'better'} /> },
      { key: 'total', title: 'Δ total', width: '6em', spare: 2, right: true, cell: (f) => <Change now={f.total} before={f.before?.total ?? 0} /> },
      summary.value.calls_known && { key: 'calls', title: 'Δ calls', width: '6em', spare: 3, right: true, cell: (f) => <Change now={f.calls ?? 0} before={f.before?.calls ?? 0} /> },
      { key: 'name', title: 'Function', width: 'minmax(12em, 1fr)', cell: (f, room) => <FunctionName name={f.name} room={room} was={was(f)} /> },
    ];
    return (
      <div class="calls">
        <h3>
          {label} <span class="faint">{about}</span>
        </h3>
        <Table label={label} columns={columns.filter((c) => c !== false)} count={rows.length} row={(i) => rows[i]} current={rows.findIndex((f) => f.id === selected.value)} onSelect={(f) => select(f.id)} onMove={(f) => moveTo(f.id)} onOpen={(f) => select(f.id, { view: 'source' })} empty={all.length > 0 ? 'None matches.' : 'None.'} />
      </div>
    );
  };
  return (
    <section class="view changes" aria-label="Changes">
      <div class="bar">
        <Filter name="changed" what="functions" />
        <span>
          {thread.value && (comparing.value ? 'This thread. ' : 'All threads. ')}Against <b title={compared.file}>{baseName(compared.file)}</b>: {thread.value && comparing.value ? 'the thread of its name' : <>{fromTo(compared.total, total)}{!sampling && <>; its code: {fromTo(compared.cycles, cycles)}</>}</>}
        </span>
        {commandLine(compared.command) !== commandLine(command) && <span class="warn">The commands differ: before it was <code>{shortName(commandLine(compared.command), 100)}</code></span>}
      </div>
      <With answer={answer} what="Comparing">
        {(c) => (
          <div class="quarters" style={{ gridTemplateRows: `${heightOf(c.worse, c.better)} ${heightOf(c.added, c.removed)}` + (c.renamed.length > 0 ? ` ${heightOf(c.renamed, [])}` : '') }}>
            {table('Worse', 'more self time than before', c.worse)}
            {table('Better', 'less self time', c.better)}
            {table('New', sampling ? 'not in the samples before' : 'did not run before', c.added)}
            {table('Gone', sampling ? 'in the samples before' : 'ran before', c.removed)}
            {c.renamed.length > 0 && table('Renamed', 'or moved, otherwise the same', c.renamed)}
          </div>
        )}
      </With>
    </section>
  );
}

// A pair of tables has room by its rows, and some in any case.
function heightOf(...tables: FunctionRow[][]): string {
  const rows = Math.max(...tables.map((t) => t.length));
  return rows === 0 ? '8rem' : `minmax(8rem, ${Math.min(20, 3 + rows)}fr)`;
}
