// V2: the selected function, who called it and what it called. It stands beside every view.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useAnswer } from '../data/ask';
import type { CallRow, Detail as DetailAnswer, FunctionId, FunctionRow } from '../data/types';
import { baseName, cut, hex, percent, plural, printable, withCommas, withUnit } from '../format';
import { comparing, get, go, select, selected, summary, thread } from '../state';
import { amount, Change, Count, inSeconds, Share, Time, Waited } from '../table/figures';
import { headHeight, rowHeight, Table, type Column } from '../table/Table';
import { FunctionName } from './columns';
import { FactList, type Fact } from './FactList';
import { With } from './Waiting';

export function Detail() {
  const answer = useAnswer<DetailAnswer>(() =>
    selected.value === null ? null : { name: 'function', params: { id: selected.value, thread: thread.value } });
  if (selected.value === null)
    return (
      <aside class="detail empty" aria-label="Function detail">
        Select a function to see who called it and what it called.
      </aside>
    );
  return (
    <aside class="detail" aria-label="Function detail">
      <With answer={answer} what="Reading the function">
        {(d) => <Shown detail={d} />}
      </With>
    </aside>
  );
}

function Shown({ detail }: { detail: DetailAnswer }) {
  const f = detail.function;
  return (
    <>
      <h2 class="name" title={cut(f.name, 2000)}>{printable(f.name)}</h2>
      <p class="where">
        {f.file && (
          <a href="#" onClick={(e) => (e.preventDefault(), select(f.id, { view: 'source' }))}>
            {baseName(f.file)}:{f.line}
          </a>
        )}{' '}
        <span class="faint" title={f.image}>
          {baseName(f.image)}+{hex(f.offset)}
        </span>
      </p>
      <Facts f={f} />
      <div class="actions">
        <button onClick={() => go({ view: 'graph' })}>Graph</button>
        <button onClick={() => go({ view: 'flame', of: String(f.id), zoom: null, search: null, inverted: '1' })} title="Everything that led here">Callers flame</button>
        <button onClick={() => go({ view: 'source', file: null })}>Source</button>
        <button onClick={() => go({ root: get('root') === String(f.id) ? null : String(f.id), view: 'graph' })} title="Measure shares in the graph against this function   r">
          {get('root') === String(f.id) ? 'Not root' : 'Make root'}
        </button>
      </div>
      <Calls title="Callers" about="who is responsible for it" of={f.id} rows={detail.callers} more={detail.more_callers} nobody="nobody" />
      <Calls title="Callees" about="what it called" of={f.id} rows={detail.callees} more={detail.more_callees} nobody="nothing" />
      {detail.os_calls.length > 0 && <OsCalls detail={detail} />}
    </>
  );
}

function Facts({ f }: { f: FunctionRow }) {
  const { calls_known, total } = summary.value;
  const facts: Fact[] = [
    ['Self', <><b>{percent(f.self / total)}</b> {amount(f.self)}{inSeconds(f.self)}</>],
    ['Total', <><b>{f.is_estimate && '≈ '}{percent(f.total / total)}</b> {amount(f.total)}{inSeconds(f.total)}{f.recursive && ' · recursive'}{f.is_estimate && ' · an estimate: it is inlined into functions that lead back to it'}</>],
  ];
  if (f.calls !== null && calls_known) facts.push(['Calls', withCommas(f.calls)]);
  if (calls_known && f.self_min !== null && f.self_max !== null)
    facts.push(['One call', `${f.self_min === f.self_max ? '' : withUnit(f.self_min) + ' to '}${amount(f.self_max)} of its own code`]);
  if (f.os_calls || f.os_time_total)
    facts.push(['OS', `${plural(f.os_calls ?? 0, 'call')}, ${withUnit(f.os_time ?? 0)}; ${withUnit(f.os_time_total ?? 0)} with descendants`]);
  if (f.waited_total) facts.push(['Waited', <><Waited of={f.waited} />; <Waited of={f.waited_total} /> with descendants</>]);
  if (comparing.value)
    facts.push(['Change', f.before ? <>self <Change now={f.self} before={f.before.self} /> · total <Change now={f.total} before={f.before.total} />{calls_known && <> · calls <Change now={f.calls ?? 0} before={f.before.calls} /></>}</> : summary.value.sampling ? 'not in the samples before' : 'it did not run before']);
  return <FactList facts={facts} />;
}

const titleHeight = 26;

// Keys move a mark, and Enter goes there: to go at once would take the table away from under them. It is as high as its rows.
function Calls({ title, about, of, rows, more, nobody }: { title: string; about: string; of: FunctionId; rows: CallRow[]; more: number; nobody: string }) {
  const at = useSignal<number | null>(null);
  useEffect(() => void (at.value = null), [of]);
  const goTo = (c: CallRow) => c.id !== null && select(c.id);
  const height = titleHeight + headHeight + (rows.length || 2) * rowHeight + 4;
  const columns: (Column<CallRow> | false)[] = [
    { key: 'share', title: 'Share', about: "of this function's total", width: '5.6em', right: true, cell: (c) => <Share of={c.share} whole={1} kind="total" /> },
    { key: 'total', title: summary.value.unit, width: '5.2em', spare: 2, right: true, cell: (c) => <Time of={c.total} /> },
    summary.value.calls_known && { key: 'calls', title: 'Calls', width: '6.6em', spare: 1, right: true, cell: (c) => <Count of={c.calls} /> },
    comparing.value && { key: 'change', title: 'Δ', width: '5.4em', right: true, cell: (c) => <Change now={c.total} before={c.before} /> },
    { key: 'name', title: 'Function', width: 'minmax(8.6em, 1fr)', cell: (c, room) => <span title={sites(c)}><FunctionName name={c.id === null ? '[start]' : c.name} room={isWithin(c) ? Math.max(4, room - 11) : room} />{isWithin(c) && <span class="faint" title="A call within a call: its time is that of the outer one."> (recursion)</span>}</span> },
  ];
  return (
    <div class="calls" style={{ flexBasis: height + 'px', minHeight: Math.min(height, 6 * rowHeight) + 'px' }}>
      <h3>
        {title} <span class="faint">{about}{more > 0 && `; ${withCommas(more)} smaller ones are not shown`}</span>
      </h3>
      <Table label={title} of={of} columns={columns.filter((c) => c !== false)} count={rows.length} row={(i) => rows[i]} current={at.value} onMove={(_, i) => (at.value = i)} onSelect={goTo} onOpen={goTo} empty={nobody} />
    </div>
  );
}

// A call that took no time of its own is one within another, as nothing is counted twice.
function isWithin(c: CallRow): boolean {
  return summary.value.calls_known && (c.calls ?? 0) > 0 && c.total === 0 && !c.before;
}

function sites(c: CallRow): string {
  return c.sites.map((s) => `${s.place}${s.kind === 'call' ? '' : ` [${s.kind}]`}${s.calls === null ? '' : `  ${withCommas(s.calls)}×`}  ${withUnit(s.total)}`).join('\n');
}

function OsCalls({ detail }: { detail: DetailAnswer }) {
  return (
    <div class="os">
      <h3>OS calls</h3>
      <ul>
        {detail.os_calls.slice(0, 8).map((o) => (
          <li key={o.number}>
            <span class="name">{o.name}</span> {withCommas(o.calls)}×, {amount(o.time)}
            {o.errors > 0 && `, ${plural(o.errors, 'error')}`}
          </li>
        ))}
      </ul>
    </div>
  );
}
