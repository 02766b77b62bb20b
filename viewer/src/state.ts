// What is looked at: one record of short strings, kept in the address behind '#'. Going back and forward is the browser's.
import { computed, signal } from '@preact/signals';
import { source } from './data/ask';
import type { FunctionId, Summary } from './data/types';

type Record_ = Readonly<Record<string, string>>;

function parse(): Record_ {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

const state = signal<Record_>(typeof location === 'undefined' ? {} : parse());
export const summary = signal<Summary>(undefined as unknown as Summary); // there before any view is

export function get(name: string, otherwise = ''): string {
  return state.value[name] ?? otherwise;
}

function merged(changes: Record<string, string | null>): Record_ {
  const next: Record<string, string> = { ...state.value };
  for (const [name, value] of Object.entries(changes))
    if (value === null || value === '') delete next[name];
    else next[name] = value;
  return next;
}

function address(next: Record_): string {
  return '#' + new URLSearchParams(next).toString();
}

// A step that one can go back from.
export function go(changes: Record<string, string | null>) {
  const next = merged(changes);
  if (address(next) === address(state.value)) return;
  state.value = next;
  history.pushState(null, '', address(next));
}

// A setting of the view at hand.
export function tune(changes: Record<string, string | null>) {
  state.value = merged(changes);
  history.replaceState(null, '', address(state.value));
}

export function followAddress() {
  const follow = () => (state.value = parse());
  addEventListener('popstate', follow);
  addEventListener('hashchange', follow);
}

export const selected = computed<FunctionId | null>(() => (get('fn') === '' ? null : Number(get('fn'))));
// Who selects a function has left the file that was looked at as a whole.
function choice(id: FunctionId | null): Record<string, string | null> {
  return { fn: id === null ? null : String(id), file: null };
}
export function select(id: FunctionId | null, more: Record<string, string | null> = {}) {
  go({ ...choice(id), ...more });
}

// By an arrow key: Back leads to where one came from, not through all rows.
export function moveTo(id: FunctionId | null) {
  tune(choice(id));
}

export const view = computed(() => get('view', 'functions'));
export const thread = computed(() => (source.live ? get('thread') : '')); // '': all, and a file holds no other
// (Not every thread has a counterpart in the run before.)
export const comparing = computed(() => {
  const { compared } = summary.value;
  return compared !== null && (thread.value === '' || compared.threads.includes(Number(thread.value)));
});

// Kept between visits, where the browser allows it.
export function remember(key: string, value: string) {
  try {
    localStorage.setItem('weir.' + key, value);
  } catch {
    /* a page from disk may have no storage */
  }
}
export function remembered(key: string): string | null {
  try {
    return localStorage.getItem('weir.' + key);
  } catch {
    return null;
  }
}
