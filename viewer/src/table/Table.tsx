// A table of any length: only rows in sight are made. Rows are of one height, so that a place is a product.
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isOfControl } from '../app/keys';

export interface Column<Row> {
  key: string;
  title: string;
  about?: string; // in words, for those who wonder
  width: string; // as a grid has it: "6rem", "1fr"
  right?: boolean; // figures
  sortable?: boolean;
  value?: (row: Row) => number | string; // what rows are sorted by, where the table has them all
  spare?: number; // where the table is too narrow, the column with the largest goes first; one without never goes
  cell: (row: Row, room: number) => ComponentChildren; // room: characters of a name that the cell is wide
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  count: number;
  row: (index: number) => Row | undefined; // undefined: it is on its way
  onSeen?: (first: number, last: number) => void;
  current?: number | null; // index of the selected row
  onSelect?: (row: Row, index: number) => void;
  onMove?: (row: Row, index: number) => void; // by a key; where it is not given, a key selects
  onOpen?: (row: Row) => void; // Enter, double click
  sort?: string;
  ascending?: boolean;
  onSort?: (key: string) => void;
  rowClass?: (row: Row, index: number) => string;
  empty?: ComponentChildren;
  autoFocus?: boolean;
  of?: unknown; // what the rows are about: of something else, they are seen from the first
}

export const rowHeight = 24;
export const headHeight = 26;
const em = 13;
const character = 7.23; // of names
const cellPadding = 12;

// "5.8em", "minmax(15em, 1fr)": what a column takes at least.
function leastWidth(column: { width: string }): number {
  return parseFloat(/[\d.]+(?=em)/.exec(column.width)?.[0] ?? '0') * em;
}

// The columns that there is room for.
export function fitting<C extends { width: string; spare?: number }>(columns: C[], width: number): C[] {
  const shown = [...columns];
  while (shown.reduce((sum, c) => sum + leastWidth(c), 0) > width) {
    const goes = shown.reduce((a, c) => ((c.spare ?? 0) > (a.spare ?? 0) ? c : a), shown[0]!);
    if (!goes?.spare) break;
    shown.splice(shown.indexOf(goes), 1);
  }
  return shown;
}

export function Table<Row>(props: Props<Row>): VNode {
  const { count, row } = props;
  const current = (props.current ?? -1) >= 0 ? props.current! : null;
  const body = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState({ top: 0, height: 600, width: 0 });
  const [widths, setWidths] = useState<number[]>([]);
  const columns = scroll.width > 0 ? fitting(props.columns, scroll.width) : props.columns;
  const margin = 8;
  const first = Math.max(0, Math.floor(scroll.top / rowHeight) - margin);
  const last = Math.min(count, Math.ceil((scroll.top + scroll.height) / rowHeight) + margin);
  const grid = { gridTemplateColumns: columns.map((c) => c.width).join(' ') };
  const least = { minWidth: columns.reduce((sum, c) => sum + leastWidth(c), 0) + 'px' };

  useLayoutEffect(() => {
    const element = body.current!;
    const measure = () => setScroll({ top: element.scrollTop, height: element.clientHeight, width: element.clientWidth });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    if (props.autoFocus) element.focus({ preventScroll: true });
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const now = [...head.current!.children].map((c) => (c as HTMLElement).offsetWidth);
    if (now.join() !== widths.join()) setWidths(now);
  });
  useLayoutEffect(() => void (body.current!.scrollTop = 0), [props.of]);
  useEffect(() => props.onSeen?.(first, last), [first, last, count, props.onSeen]);
  useEffect(() => {
    if (current !== null) reveal(current);
  }, [current, count]);

  function reveal(index: number) {
    const element = body.current;
    if (!element) return;
    const top = index * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight - headHeight)
      element.scrollTop = Math.max(0, top - Math.floor(element.clientHeight / 2));
  }

  // Where a key led to a row that is on its way, it is gone to when it is there.
  const wanted = useRef<number | null>(null);
  useEffect(() => {
    if (wanted.current !== null && row(wanted.current)) goTo(wanted.current);
  });
  function goTo(index: number) {
    const there = row(index);
    wanted.current = there ? null : index;
    if (there) (props.onMove ?? props.onSelect)?.(there, index);
    else reveal(index);
  }

  function onKey(e: KeyboardEvent) {
    if (e.ctrlKey || e.metaKey || e.altKey || count === 0 || isOfControl(e)) return;
    const page = Math.max(1, Math.floor(scroll.height / rowHeight) - 1);
    const at = current ?? -1;
    const steps: Record<string, number> = {
      ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1,
    };
    const to = steps[e.key];
    const here = at >= 0 ? row(at) : undefined;
    if (e.key === 'Enter' && here && props.onOpen) props.onOpen(here);
    else if (to !== undefined && (props.onMove ?? props.onSelect)) goTo(Math.min(count - 1, Math.max(0, to)));
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  const rows: VNode[] = [];
  for (let i = first; i < last; i++) {
    const r = row(i);
    rows.push(
      <div
        key={i}
        id={`${props.label}-${i}`}
        role="row"
        aria-rowindex={i + 2}
        aria-selected={i === current}
        class={`row ${i === current ? 'current' : ''} ${r && props.rowClass ? props.rowClass(r, i) : ''}`}
        style={{ ...grid, top: i * rowHeight + 'px', height: rowHeight + 'px' }}
        onClick={() => r && ((wanted.current = null), props.onSelect?.(r, i))}
        onDblClick={() => r && props.onOpen?.(r)}
      >
        {columns.map((c, at) => (
          <div key={c.key} role="gridcell" class={c.right ? 'cell right' : 'cell'}>
            {r ? c.cell(r, Math.max(4, Math.floor(((widths[at] ?? Infinity) - cellPadding) / character))) : <span class="faint">…</span>}
          </div>
        ))}
      </div>,
    );
  }
  return (
    <div class="table" role="grid" aria-label={props.label} aria-rowcount={count + 1}>
      <div
        class="body"
        ref={body}
        tabIndex={0}
        role="rowgroup"
        aria-label={`${props.label}, ${count} rows`}
        aria-activedescendant={current !== null ? `${props.label}-${current}` : undefined}
        onKeyDown={onKey}
        onScroll={(e) => setScroll({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight, width: e.currentTarget.clientWidth })}
      >
        <div class="head" ref={head} role="row" aria-rowindex={1} style={{ ...grid, ...least, height: headHeight + 'px' }}>
          {columns.map((c) => (
            <Head key={c.key} column={c} {...props} />
          ))}
        </div>
        <div class="spacer" style={{ ...least, height: count * rowHeight + 'px' }}>
          {rows}
        </div>
        {count === 0 && <div class="empty">{props.empty ?? 'Nothing here.'}</div>}
      </div>
    </div>
  );
}

function Head<Row>({ column, sort, ascending, onSort }: { column: Column<Row> } & Props<Row>) {
  const sorted = sort === column.key ? (ascending ? 'ascending' : 'descending') : undefined;
  const name = (
    <>
      {column.title}
      {sorted && <span aria-hidden="true">{ascending ? ' ▲' : ' ▼'}</span>}
    </>
  );
  return (
    <div role="columnheader" class={column.right ? 'cell right' : 'cell'} aria-sort={sorted ?? 'none'} title={column.about}>
      {onSort && (column.sortable || column.value) ? <button onClick={() => onSort(column.key)}>{name}</button> : name}
    </div>
  );
}
