// Figures and names for people, as src/base/text.h has them.

const units: [number, string][] = [[1e15, ' P'], [1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k']];

// "950", "12.3 k", "1.23 M": three digits that count. Numbers below 10,000 are written out.
export function withUnit(n: number): string {
  const sign = n < 0 ? '−' : '';
  const size = Math.abs(n);
  if (size < 10000) return sign + withCommas(Math.round(size));
  for (const [unit, name] of units) if (size >= unit * 0.9995) return sign + threeDigits(size / unit) + name;
  return sign + withCommas(size);
}

function threeDigits(n: number): string {
  return n >= 99.95 ? n.toFixed(0) : n >= 9.995 ? n.toFixed(1) : n.toFixed(2);
}

export function withCommas(n: number): string {
  return n.toLocaleString('en-US');
}

// "12.34 %" of a fraction; "·" for nothing.
export function percent(fraction: number): string {
  if (!isFinite(fraction) || fraction === 0) return '·';
  if (Math.abs(fraction) < 0.00005) return (fraction < 0 ? '>−' : '<') + '0.01 %';
  return (fraction * 100).toFixed(2).replace('-', '−') + ' %';
}

// Of the filter: "0.1 %", "12 %".
export function shortPercent(fraction: number): string {
  return `${+(fraction * 100).toFixed(2)} %`;
}

export function seconds(s: number): string {
  if (s >= 1) return `${threeDigits(s)} s`;
  if (s >= 1e-3) return `${threeDigits(s * 1e3)} ms`;
  if (s >= 1e-6) return `${threeDigits(s * 1e6)} µs`;
  return s ? `${threeDigits(s * 1e9)} ns` : '0 s';
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export function hex(n: number): string {
  return '0x' + n.toString(16);
}

export function plural(n: number, one: string, many = one + 's'): string {
  return `${withCommas(n)} ${n === 1 ? one : many}`;
}

// "3 threads in 2 processes, which ran 5 programs".
export function threadsAndProcesses(s: { threads: number; processes: number; programs: number }): string {
  const ran = s.programs !== s.processes ? `, which ran ${plural(s.programs, 'program')}` : '';
  return `${plural(s.threads, 'thread')} in ${plural(s.processes, 'process', 'processes')}${ran}`;
}

// The beginning of a text that is no name.
export function cut(text: string, width: number): string {
  return text.length > width ? text.slice(0, width - 1) + '…' : text;
}

// Control characters would move or colour what stands behind them.
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, '·');
}

// A name in at most `width` characters (0: any). First template arguments go, then parameters, then outer scopes, then what
// tells that something went, then the middle.
// Of what has no name, image+0xoffset, the offset stays: it is all that tells one from another.
export function shortName(name: string, width: number): string {
  let short = printable(name);
  if (width <= 0 || short.length <= width) return short;
  const offset = /\+0x[0-9a-f]+$/.exec(short)?.[0];
  if (offset && offset.length < width) return short.slice(0, width - offset.length - 1) + '…' + offset;
  short = folded(short, '<', '>');
  if (short.length > width) short = folded(short, '(', ')');
  while (short.length > width) {
    const scope = short.indexOf('::', short.startsWith('…::') ? 3 : 0);
    if (scope < 0) break;
    short = '…' + short.slice(scope);
  }
  if (short.length > width) short = short.replace(/(?<=.)(?<!operator)\(…?\)$/, '');
  if (short.length > width) short = short.replace(/^…::/, '');
  if (short.length <= width) return short;
  if (width <= 3) return short.slice(0, Math.max(0, width - 1)) + '…';
  const head = Math.ceil((width - 1) / 2);
  return short.slice(0, head) + '…' + short.slice(short.length - (width - 1 - head));
}

// What stands between the outermost `open` and `close` becomes "…"; operators that look like them stay.
function folded(text: string, open: string, close: string): string {
  let result = '';
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    const operator = result.endsWith('operator') || result.endsWith('operator' + c) || text[i - 1] === '-';
    if (c === open && !operator) {
      if (depth++ === 0) result += text[i + 1] === close ? open : open + '…';
    } else if (c === close && depth > 0 && !(text[i - 1] === '-')) {
      if (--depth === 0) result += close;
    } else if (depth === 0) {
      result += c;
    }
  }
  return depth === 0 ? result : text;
}

export function commandLine(words: string[]): string {
  return words.map((w) => (/^[\w@%+=:,./-]+$/.test(w) ? w : `'${w.replaceAll("'", "'\\''")}'`)).join(' ');
}
