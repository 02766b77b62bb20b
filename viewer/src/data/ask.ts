// Questions of components: asked once, kept, and shared.
import { signal, useComputed, useSignal, useSignalEffect, type Signal } from '@preact/signals';
import { question, Told, type Params, type Source } from './source';

export interface Answer<T> {
  value?: T;
  error?: string;
  since?: number; // waiting, since
}

export let source: Source;
export function setSource(s: Source) {
  source = s;
}

const kept = new Map<string, Signal<Answer<unknown>>>();
const most = 200; // answers; the oldest go first

export function ask<T>(name: string, params?: Params): Signal<Answer<T>> {
  const key = question(name, params);
  let answer = kept.get(key);
  if (!answer) {
    answer = signal<Answer<unknown>>({ since: performance.now() });
    const settle = answer;
    kept.set(key, answer);
    if (kept.size > most) kept.delete(kept.keys().next().value!);
    source.ask<T>(name, params).then(
      (value) => (settle.value = { value }),
      (e) => {
        settle.value = { error: e instanceof Told ? e.message : `Something went wrong in this page: ${e}` };
        kept.delete(key); // another time it may work
        if (!(e instanceof Told)) console.error(e);
      },
    );
  }
  return answer as Signal<Answer<T>>;
}

// Of a component: the answer to a question that depends on signals; null asks nothing. Until a new answer is there the last one stays.
export function useAnswer<T>(of: () => { name: string; params?: Params } | null): Answer<T> {
  const asked = useComputed(() => {
    const q = of();
    return q && ask<T>(q.name, q.params);
  });
  const last = useSignal<T | undefined>(undefined);
  useSignalEffect(() => {
    const value = asked.value?.value.value;
    if (value !== undefined) last.value = value;
    else if (asked.value === null) last.value = undefined;
  });
  const now = asked.value?.value ?? {};
  return now.value === undefined && !now.error && last.value !== undefined ? { ...now, value: last.value } : now;
}
