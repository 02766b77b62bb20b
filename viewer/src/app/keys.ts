// The keyboard: components say which keys they answer to, and `?` lists them all.
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

export interface Command {
  keys: string; // "g", "?", "Alt+ArrowLeft"; several with a blank between
  about: string;
  run: (key: string) => void;
}

export const commands = signal<readonly Command[]>([]);
export const dialog = signal(false); // is open: only the keys that close it do something

// While the component is there. A later one comes before an earlier one with the same key.
export function useCommands(list: Command[]) {
  const latest = useRef(list);
  latest.current = list;
  useEffect(() => {
    const mine = list.map((c, i): Command => ({ ...c, run: (key) => latest.current[i]?.run(key) }));
    commands.value = [...commands.value, ...mine];
    return () => {
      commands.value = commands.value.filter((c) => !mine.includes(c));
    };
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.matches('input:not([type=checkbox]):not([type=range]), textarea, select') || target.isContentEditable);
}

export function listenToKeys() {
  addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.defaultPrevented) return;
    const key = (e.altKey ? 'Alt+' : '') + (e.key === ' ' ? 'Space' : e.key);
    if (isTyping(e.target)) {
      if (key === 'Escape') (e.target as HTMLElement).blur();
      return;
    }
    const command = commands.value.findLast((c) => c.keys.split(' ').includes(key));
    if (!command || (dialog.value && key !== 'Escape' && key !== '?')) return;
    e.preventDefault();
    command.run(key);
  });
}
