// Figures in cells.
import { percent, seconds, withCommas, withUnit } from '../format';
import { summary } from '../state';

// "12.3 k cycles", "1 sample".
export function amount(n: number): string {
  const { unit } = summary.value;
  return `${withUnit(n)} ${n === 1 ? unit.replace(/s$/, '') : unit}`;
}

// " · 39.2 ms" of a time, where it is one.
export function inSeconds(of: number): string {
  const { units_per_second } = summary.value;
  return units_per_second > 0 ? ` · ${seconds(of / units_per_second)}` : '';
}

// What was waited is measured time.
export function Waited({ of }: { of: number | null }) {
  const { os_units_per_second } = summary.value;
  return of && os_units_per_second > 0 ? <span title={`${withCommas(of)} ticks`}>{seconds(of / os_units_per_second)}</span> : <span class="faint">{of === null ? '–' : '·'}</span>;
}

// A share with a bar behind it. One that is no exact figure has what there is to know about it.
export function Share({ of, whole, kind = 'self', about }: { of: number; whole?: number; kind?: 'self' | 'total' | 'plain' | 'worse' | 'better'; about?: string }) {
  const all = whole ?? summary.value.total;
  const fraction = all > 0 ? of / all : 0;
  return (
    <span class={`share ${kind}`} style={{ '--share': Math.min(1, Math.max(0, fraction)) }} title={about}>
      {about && '≈ '}
      {percent(fraction)}
    </span>
  );
}

export function Time({ of }: { of: number | null }) {
  return of === null ? <span class="faint">–</span> : <span title={`${withCommas(of)} ${summary.value.unit}${inSeconds(of)}`}>{of ? withUnit(of) : '·'}</span>;
}

export function Count({ of }: { of: number | null }) {
  return of === null ? <span class="faint">–</span> : <>{of ? withCommas(of) : '·'}</>;
}

// A change for the worse is positive.
export function Change({ now, before }: { now: number; before: number | null | undefined }) {
  if (before === undefined) return null;
  if (before === null) return <span class="worse">new</span>;
  const change = now - before;
  if (change === 0) return <span class="faint">=</span>;
  return (
    <span class={change > 0 ? 'worse' : 'better'} title={`${withCommas(before)} → ${withCommas(now)}`}>
      {change > 0 ? '+' : ''}
      {withUnit(change)}
    </span>
  );
}
