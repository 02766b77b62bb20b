// The columns of functions, for the list and for what was added to a graph's names.
import { baseName, cut, shortName, withUnit, percent, withCommas } from '../format';
import type { FunctionRow } from '../data/types';
import { comparing, summary } from '../state';
import { Change, Count, Share, Time, Waited } from '../table/figures';
import type { Column } from '../table/Table';

export function place(row: { file: string | null; line: number | null }): string {
  return row.file ? baseName(row.file) + (row.line ? ':' + row.line : '') : '';
}

export function FunctionName({ name, room, was = '' }: { name: string; room: number; was?: string }) {
  return (
    <span class="name" title={cut(name, 2000) + (was && ` (was ${cut(was, 2000)})`)}>
      {shortName(name, Math.min(160, room))}
      {was && <span class="faint"> (was {shortName(was, 60)})</span>}
    </span>
  );
}

// What a renamed or moved function was in the run before; '' where it is the same.
export function was({ before }: FunctionRow): string {
  if (!before) return '';
  return [before.name ?? '', before.image ? `in ${baseName(before.image)}` : ''].filter(Boolean).join(' ');
}

export function nothingRan(): string {
  return summary.value.sampling ? 'No sample was taken.' : 'No function ran.';
}

export function functionColumns(): Column<FunctionRow>[] {
  const { unit, calls_known, os_time, waited } = summary.value;
  const columns: (Column<FunctionRow> | false)[] = [
    { key: 'self', title: 'Self', about: `${unit} in the function itself`, width: '5.8em', right: true, sortable: true, cell: (f) => <Share of={f.self} /> },
    { key: 'self_', title: unit, width: '5em', spare: 5, right: true, cell: (f) => <Time of={f.self} /> },
    { key: 'total', title: 'Total', about: `with all that it calls; recursion is not counted twice`, width: '5.8em', right: true, sortable: true, cell: (f) => <Share of={f.total} kind="total" about={f.is_estimate ? 'an estimate: it is inlined into functions that lead back to it' : undefined} /> },
    { key: 'total_', title: unit, width: '5em', spare: 6, right: true, cell: (f) => <Time of={f.total} /> },
    calls_known && { key: 'calls', title: 'Calls', width: '7em', spare: 3, right: true, sortable: true, cell: (f) => <Count of={f.calls} /> },
    comparing.value && { key: 'change', title: 'Δ self', about: 'against the run before', width: '5.4em', right: true, sortable: true, cell: (f) => <Change now={f.self} before={f.before === null ? null : f.before?.self} /> },
    comparing.value && { key: 'change_total', title: 'Δ total', width: '5.4em', spare: 2, right: true, sortable: true, cell: (f) => <Change now={f.total} before={f.before === null ? null : f.before?.total} /> },
    calls_known && { key: 'self_max', title: 'Max self', about: 'of one call', width: '5.4em', spare: 9, right: true, sortable: true, cell: (f) => <Time of={f.self_max} /> },
    os_time > 0 && { key: 'os_time', title: 'OS time', about: 'in OS calls that it makes itself', width: '5.4em', spare: 7, right: true, sortable: true, cell: (f) => <Time of={f.os_time} /> },
    waited > 0 && { key: 'waited', title: 'Waited', about: 'in OS calls that it makes itself, off the processor', width: '5.4em', spare: 7, right: true, sortable: true, cell: (f) => <Waited of={f.waited} /> },
    { key: 'name', title: 'Function', width: 'minmax(17em, 2fr)', sortable: true, cell: (f, room) => <FunctionName name={f.name} room={room} was={was(f)} /> },
    { key: 'image', title: 'Image', width: 'minmax(8em, 1fr)', spare: 4, sortable: true, cell: (f) => <span class="faint" title={f.image}>{baseName(f.image)}</span> },
    { key: 'file', title: 'Declared at', width: 'minmax(6em, 1fr)', spare: 8, sortable: true, cell: (f) => <span class="faint" title={f.file ?? ''}>{place(f)}</span> },
  ];
  return columns.filter((c) => c !== false);
}

// Any datum of a function as a short text: what may stand left and right of its name in the graph.
export interface Datum {
  key: string;
  title: string;
  text: (f: FunctionRow & { at_most?: boolean }, whole: number) => string;
}

export function data(): Datum[] {
  const { calls_known, os_calls, unit } = summary.value;
  const list: (Datum | false)[] = [
    { key: '', title: 'nothing', text: () => '' },
    { key: 'totalp', title: 'total %', text: (f, whole) => atMost(f) + percent(f.total / whole) },
    { key: 'total', title: `total ${unit}`, text: (f) => atMost(f) + withUnit(f.total) },
    { key: 'selfp', title: 'self %', text: (f, whole) => atMost(f) + percent(f.self / whole) },
    { key: 'self', title: `self ${unit}`, text: (f) => atMost(f) + withUnit(f.self) },
    calls_known && { key: 'calls', title: 'calls', text: (f) => withCommas(f.calls ?? 0) + '×' },
    calls_known && { key: 'min', title: 'min self', text: (f) => (f.self_min === null ? '–' : withUnit(f.self_min)) },
    calls_known && { key: 'max', title: 'max self', text: (f) => (f.self_max === null ? '–' : withUnit(f.self_max)) },
    os_calls > 0 && { key: 'oscalls', title: 'OS calls', text: (f) => (f.os_calls === null ? '–' : withCommas(f.os_calls)) },
    os_calls > 0 && { key: 'ostime', title: 'OS time', text: (f) => (f.os_time_total === null ? '–' : withUnit(f.os_time_total)) },
    { key: 'image', title: 'image', text: (f) => baseName(f.image) },
    { key: 'place', title: 'file and line', text: place },
    comparing.value && { key: 'change', title: 'change of total', text: (f) => changeText(f) },
  ];
  return list.filter((d) => d !== false);
}

export function atMost(of: { at_most?: boolean }): string {
  return of.at_most ? '≤ ' : '';
}

function changeText(f: FunctionRow): string {
  if (!f.before) return 'new';
  const change = f.total - f.before.total;
  return change === 0 ? '=' : (change > 0 ? '+' : '') + withUnit(change);
}
