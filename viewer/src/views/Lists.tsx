// Threads, OS calls, coverage, changes and the run: one table each.
import { useSignal } from '@preact/signals';
import { useAnswer } from '../data/ask';
import type { Changes, CoverageRow, FunctionRow, OsTable, ThreadRow } from '../data/types';
import { baseName, commandLine, percent, plural, printable, seconds, shortName, withCommas, withUnit } from '../format';
import { get, go, select, selected, summary, thread, tune } from '../state';
import { Change, Count, Share, Time } from '../table/figures';
import { Table, type Column } from '../table/Table';
import { FunctionName } from './columns';
import { FactList, type Fact } from './FactList';
import { With } from './Waiting';

export function Threads() {
  const answer = useAnswer<{ threads: ThreadRow[] }>(() => ({ name: 'threads' }));
  const current = thread.value;
  const unit = summary.value.unit;
  return (
    <section class="view" aria-label="Threads">
      <With answer={answer} what="Reading threads">
        {({ threads }) => {
          const begin = Math.min(...threads.map((t) => t.started || Infinity));
          const end = Math.max(...threads.map((t) => t.finished));
          const columns: Column<ThreadRow>[] = [
            { key: 'share', title: 'Share', width: '6em', right: true, cell: (t) => <Share of={t.cycles + t.os_time} kind="total" /> },
            { key: 'cycles', title: `Code, ${unit}`, width: '7em', right: true, cell: (t) => <Time of={t.cycles} /> },
            { key: 'os', title: 'OS time', width: '6em', right: true, cell: (t) => <Time of={t.os_time} /> },
            { key: 'functions', title: 'Functions', width: '6em', right: true, cell: (t) => <Count of={t.functions} /> },
            { key: 'pid', title: 'pid', width: '5em', right: true, cell: (t) => t.pid },
            { key: 'tid', title: 'tid', width: '5em', right: true, cell: (t) => t.tid || 'others' },
            { key: 'name', title: 'Name', width: '9em', cell: (t) => printable(t.name) },
            { key: 'when', title: 'Process ran', width: '10em', cell: (t) => <When t={t} begin={begin} end={end} /> },
            { key: 'ended', title: 'Ended', width: '7em', cell: (t) => t.ended },
            { key: 'command', title: 'Command', width: 'minmax(12em, 1fr)', cell: (t) => <span class="name" title={t.command}>{t.command}</span> },
          ];
          return (
            <>
              <div class="bar">
                <span>
                  {plural(summary.value.threads, 'thread')} in {plural(summary.value.processes, 'process', 'processes')}. Select one to see its time alone in every view.
                </span>
                {current && <button onClick={() => go({ thread: null })}>All threads</button>}
              </div>
              <Table label="Threads" columns={columns} count={threads.length} row={(i) => threads[i]} current={threads.findIndex((t) => String(t.id) === current)} onSelect={(t) => go({ thread: String(t.id) })} onOpen={(t) => go({ thread: String(t.id), view: 'functions' })} autoFocus />
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
  const current = useSignal<number | null>(null);
  const unit = summary.value.unit;
  type Row = OsTable['oscalls'][number];
  const columns: Column<Row>[] = [
    { key: 'share', title: 'Share', about: 'of the program', width: '6em', right: true, cell: (o) => <Share of={o.time} /> },
    { key: 'time', title: `Time, ${unit}`, width: '7em', right: true, cell: (o) => <Time of={o.time} /> },
    { key: 'calls', title: 'Calls', width: '6em', right: true, cell: (o) => <Count of={o.calls} /> },
    { key: 'errors', title: 'Errors', width: '5em', right: true, cell: (o) => <Count of={o.errors} /> },
    { key: 'waited', title: 'Waited', about: 'for a child or a person: charged to nobody', width: '6em', right: true, cell: (o) => <Time of={o.waited} /> },
    { key: 'class', title: 'Class', about: 'timed: measured; determinate and fixed: by a table', width: '7em', cell: (o) => o.class },
    { key: 'name', title: 'Call', width: '10em', cell: (o) => <span class="name">{o.name}</span> },
    { key: 'by', title: 'Made by', width: 'minmax(14em, 1fr)', cell: (o) => <Makers row={o} /> },
  ];
  return (
    <section class="view" aria-label="OS calls">
      <div class="bar">
        {plural(summary.value.os_calls, 'OS call')} took {withUnit(summary.value.os_time)} {unit}, {percent(summary.value.os_time / (summary.value.total || 1))} of the program.
        {summary.value.waited > 0 && ` Waits for a child or a person, not charged: ${withUnit(summary.value.waited)}.`}
      </div>
      <With answer={answer} what="Reading OS calls">
        {({ oscalls }) => <Table label="OS calls" columns={columns} count={oscalls.length} row={(i) => oscalls[i]} current={current.value} onSelect={(_, i) => (current.value = i)} onOpen={(o) => o.by[0] && select(o.by[0].id)} empty="No OS calls were made." autoFocus />}
      </With>
    </section>
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
  const text = get('covered').toLowerCase();
  const bar = (run: number, all: number) => (all ? <Share of={run} whole={all} kind="plain" /> : <span class="faint">–</span>);
  const columns: Column<CoverageRow>[] = [
    { key: 'functions', title: 'Functions', width: '6em', right: true, cell: (c) => bar(c.functions_run, c.functions) },
    { key: 'functions_', title: 'ran of', width: '7em', right: true, cell: (c) => <span class="faint">{c.functions ? `${withCommas(c.functions_run)} / ${withCommas(c.functions)}` : ''}</span> },
    { key: 'blocks', title: 'Blocks', about: 'of functions that ran', width: '6em', right: true, cell: (c) => bar(c.blocks_run, c.blocks) },
    { key: 'lines', title: 'Lines', about: 'of functions that ran', width: '6em', right: true, cell: (c) => bar(c.lines_run, c.lines) },
    { key: 'lines_', title: 'ran of', width: '7em', right: true, cell: (c) => <span class="faint">{c.lines ? `${withCommas(c.lines_run)} / ${withCommas(c.lines)}` : ''}</span> },
    { key: 'file', title: 'File', width: 'minmax(14em, 1fr)', cell: (c) => <span class="name" title={c.file ?? c.image}>{c.file ?? `[${baseName(c.image)}]`}</span> },
    { key: 'image', title: 'Image', width: '10em', cell: (c) => <span class="faint" title={c.image}>{baseName(c.image)}</span> },
  ];
  const current = useSignal<number | null>(null);
  return (
    <section class="view" aria-label="Coverage">
      <With answer={answer} what="Adding up what ran">
        {({ coverage }) => {
          const rows = coverage.filter((c) => (c.file ?? c.image).toLowerCase().includes(text));
          const sum = (key: 'functions' | 'functions_run' | 'blocks' | 'blocks_run' | 'lines' | 'lines_run') => rows.reduce((n, r) => n + r[key], 0);
          const of = (run: number, all: number) => (all ? `${withCommas(run)} of ${withCommas(all)} (${percent(run / all)})` : 'none');
          return (
            <>
              <div class="bar">
                <input id="find-here" type="search" placeholder="Filter files   f" aria-label="Filter files" value={get('covered')} onInput={(e) => tune({ covered: e.currentTarget.value })} />
                <span>
                  Ran: {of(sum('functions_run'), sum('functions'))} functions; of these {of(sum('blocks_run'), sum('blocks'))} blocks, {of(sum('lines_run'), sum('lines'))} lines.
                </span>
              </div>
              <Table label="Coverage" columns={columns} count={rows.length} row={(i) => rows[i]} current={current.value} onSelect={(_, i) => (current.value = i)} onOpen={(c) => c.file && go({ view: 'source', file: c.file })} empty="No file matches." autoFocus />
            </>
          );
        }}
      </With>
    </section>
  );
}

// Regressions apart from improvements: what became worse never hides behind what became better.
export function ChangesView() {
  const answer = useAnswer<Changes>(() => ({ name: 'changes', params: { thread: thread.value } }));
  const { compared, total, unit } = summary.value;
  if (!compared) return null;
  const table = (label: string, about: string, rows: FunctionRow[]) => {
    const columns: (Column<FunctionRow> | false)[] = [
      { key: 'change', title: 'Δ self', width: '6em', right: true, cell: (f) => <Change now={f.self} before={f.before?.self ?? 0} /> },
      { key: 'share', title: 'of before', about: 'share of the total of the run before', width: '5.4em', spare: 1, right: true, cell: (f) => <Share of={Math.abs(f.self - (f.before?.self ?? 0))} whole={compared.total} kind="plain" /> },
      { key: 'total', title: 'Δ total', width: '6em', spare: 2, right: true, cell: (f) => <Change now={f.total} before={f.before?.total ?? 0} /> },
      summary.value.calls_known && { key: 'calls', title: 'Δ calls', width: '6em', spare: 3, right: true, cell: (f) => <Change now={f.calls} before={f.before?.calls ?? 0} /> },
      { key: 'name', title: 'Function', width: 'minmax(12em, 1fr)', cell: (f, room) => <FunctionName name={f.name} room={room} /> },
    ];
    return (
      <div class="calls">
        <h3>
          {label} <span class="faint">{about}</span>
        </h3>
        <Table label={label} columns={columns.filter((c) => c !== false)} count={rows.length} row={(i) => rows[i]} current={rows.findIndex((f) => f.id === selected.value)} onSelect={(f) => select(f.id)} onOpen={(f) => select(f.id, { view: 'source', file: null })} empty="None." />
      </div>
    );
  };
  return (
    <section class="view changes" aria-label="Changes">
      <div class="bar">
        <span>
          Against <b title={compared.file}>{baseName(compared.file)}</b>: {withUnit(compared.total)} → {withUnit(total)} {unit}, <Change now={total} before={compared.total} /> ({percent(total / (compared.total || 1) - 1)})
        </span>
      </div>
      <With answer={answer} what="Comparing">
        {(c) => (
          <div class="quarters" style={{ gridTemplateRows: `${heightOf(c.worse, c.better)} ${heightOf(c.added, c.removed)}` }}>
            {table('Worse', 'more self time than before', c.worse)}
            {table('Better', 'less self time', c.better)}
            {table('New', 'did not run before', c.added)}
            {table('Gone', 'ran before', c.removed)}
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

export function Run() {
  const s = summary.value;
  const time = (n: number) => `${withUnit(n)} ${s.unit}${s.units_per_second && s.unit !== 'instructions' ? ` (${seconds(n / s.units_per_second)})` : ''}`;
  const facts: Fact[] = [
    ['Command', <code>{commandLine(s.command)}</code>],
    ['In', s.directory],
    ['Ended', s.ended],
    ['Profile', s.file],
    ['Kind', s.kind],
    ['Total', <b>{time(s.total)}</b>],
    ['Code', `${time(s.cycles)}, ${percent(s.cycles / (s.total || 1))}${s.instructions ? `; ${withUnit(s.instructions)} instructions` : ''}`],
    ['OS calls', `${time(s.os_time)}, ${percent(s.os_time / (s.total || 1))}; ${plural(s.os_calls, 'call')}`],
    ...(s.waited ? [['Waited', `${time(s.waited)} for a child or a person, not in the total`] as Fact] : []),
    ['Functions', `${withCommas(s.functions_run)} of ${withCommas(s.functions_known)} ran`],
    ['Call paths', s.paths_known ? withCommas(s.contexts) : 'not recorded'],
    ['Threads', `${withCommas(s.threads)} in ${plural(s.processes, 'process', 'processes')}`],
    ['Clock', s.clock === 'cycles' ? `cycles of ${s.cpu || 'the CPU'}, on ${s.host_cpu}` : s.clock],
    ['Wall time', `${s.wall_seconds.toFixed(3)} s under Weir ${s.weir_version}`],
    ...Object.entries(s.sampling ?? {}).map(([k, v]) => [`Sampling: ${k.replaceAll('_', ' ')}`, String(v)] as Fact),
  ];
  return (
    <section class="view run" aria-label="The run">
      <FactList facts={facts} wide />
      <h3>Is the data whole?</h3>
      {s.notes.length === 0 ? <p>Yes: everything that ran was seen.</p> : <ul>{s.notes.map((n) => <li key={n}>{printable(n)}</li>)}</ul>}
      {s.pruned.length > 0 && (
        <>
          <h3>What this file leaves out</h3>
          <ul>{s.pruned.map((n) => <li key={n}>{n}</li>)}</ul>
        </>
      )}
    </section>
  );
}
