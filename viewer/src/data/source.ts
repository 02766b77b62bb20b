// Where answers come from: the server of `weir view`, or the data inside an exported file. Nothing else knows which.
import type { FunctionPage, FunctionRow } from './types';

export type Params = Record<string, string | number | boolean | null | undefined>;

export interface Source {
  live: boolean;
  ask<T>(name: string, params?: Params): Promise<T>;
}

// Something that the user is told, not a bug.
export class Told extends Error {}

// "function?id=5": the name of a question, the same for the same question.
export function question(name: string, params: Params = {}): string {
  const given = Object.entries(params).filter(([, v]) => v !== null && v !== undefined && v !== '' && v !== false);
  given.sort(([a], [b]) => (a < b ? -1 : 1));
  const text = new URLSearchParams(given.map(([k, v]) => [k, v === true ? '1' : String(v)])).toString();
  return text ? `${name}?${text}` : name;
}

class Server implements Source {
  live = true;
  async ask<T>(name: string, params?: Params): Promise<T> {
    let response: Response;
    try {
      response = await fetch('q/' + question(name, params));
    } catch {
      throw new Told('weir view does not answer: has it ended? Start it again and open the address that it prints: that is another one each time.');
    }
    const answer = await response.json().catch(() => ({ error: `The answer of weir view cannot be read (status ${response.status}).` }));
    if ('error' in answer) throw new Told(answer.error);
    return answer as T;
  }
}

// Whole answers by question. Of functions there is one list, which is sorted and cut here.
export class Embedded implements Source {
  live = false;
  constructor(private answers: Record<string, unknown>) {}

  async ask<T>(name: string, params: Params = {}): Promise<T> {
    if (name === 'functions') return functionPage(this.answers['functions'] as FunctionPage, params) as T;
    const answer = this.answers[question(name, params)];
    if (answer === undefined)
      throw new Told('This file does not hold that: weir view shows all of the profile.');
    return answer as T;
  }
}

export function functionPage(all: FunctionPage, params: Params): FunctionPage {
  const matches = matcher(String(params['filter'] ?? ''), params['regex'] === true);
  const rows = all.rows.filter((row) => matches(row.name));
  const key = String(params['sort'] ?? 'self');
  rows.sort(comparison(key));
  if (params['ascending']) rows.reverse();
  const first = Number(params['offset'] ?? 0);
  const position = rows.findIndex((row) => row.id === Number(params['locate'] ?? -1));
  return {
    count: rows.length,
    first,
    rows: rows.slice(first, first + Number(params['limit'] ?? rows.length)),
    position: position < 0 ? null : position,
  };
}

// The largest first; names from A.
function comparison(key: string): (a: FunctionRow, b: FunctionRow) => number {
  if (key === 'name' || key === 'image' || key === 'file')
    return (a, b) => ((a[key] ?? '') < (b[key] ?? '') ? -1 : (a[key] ?? '') > (b[key] ?? '') ? 1 : a.id - b.id);
  const value = (row: FunctionRow): number => {
    if (key === 'change') return row.self - (row.before?.self ?? 0);
    if (key === 'change_total') return row.total - (row.before?.total ?? 0);
    return Number(row[key as keyof FunctionRow] ?? -1);
  };
  return (a, b) => value(b) - value(a) || a.id - b.id;
}

export function matcher(text: string, regex: boolean): (name: string) => boolean {
  if (!text) return () => true;
  if (regex) {
    try {
      const pattern = new RegExp(text, 'i');
      return (name) => pattern.test(name);
    } catch {
      throw new Told(`“${text}” is not a regular expression.`);
    }
  }
  const low = text.toLowerCase();
  return (name) => name.toLowerCase().includes(low);
}

async function unpack(base64: string): Promise<Record<string, unknown>> {
  const bytes = await (await fetch('data:application/gzip;base64,' + base64)).arrayBuffer();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).json();
}

export async function openSource(): Promise<Source> {
  const data = document.getElementById('weir-data')?.textContent?.trim();
  if (!data) return new Server();
  try {
    return new Embedded(await unpack(data));
  } catch (e) {
    throw new Told(`The data in this file cannot be read: it may have been cut short. (${e})`);
  }
}
