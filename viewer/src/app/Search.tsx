// Any function, from anywhere: `/`, some letters, Enter.
import { useSignal } from '@preact/signals';
import { useAnswer } from '../data/ask';
import type { FunctionPage } from '../data/types';
import { baseName, percent, shortName } from '../format';
import { select, summary, thread } from '../state';
import { focusView } from './keys';

export function Search() {
  const text = useSignal('');
  const at = useSignal(0);
  const open = useSignal(false);
  const answer = useAnswer<FunctionPage>(() =>
    text.value.trim() === '' ? null : { name: 'functions', params: { filter: text.value.trim(), sort: 'total', thread: thread.value, offset: 0, limit: 12 } });
  const rows = (open.value && text.value.trim() && answer.value?.rows) || [];
  const take = (index: number) => {
    const row = rows[index];
    if (!row) return;
    select(row.id);
    open.value = false;
    text.value = '';
    focusView();
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown') at.value = Math.min(rows.length - 1, at.value + 1);
    else if (e.key === 'ArrowUp') at.value = Math.max(0, at.value - 1);
    else if (e.key === 'Enter') take(at.value);
    else return;
    e.preventDefault();
  };
  return (
    <div class="search">
      <input
        id="search"
        type="text"
        role="combobox"
        aria-expanded={rows.length > 0}
        aria-controls="found"
        aria-activedescendant={rows.length > 0 ? `found-${at.value}` : undefined}
        aria-label="Go to a function"
        placeholder="Go to a function   /"
        autocomplete="off"
        value={text.value}
        onInput={(e) => ((text.value = e.currentTarget.value), (at.value = 0), (open.value = true))}
        onKeyDown={onKey}
        onBlur={() => setTimeout(() => (open.value = false), 150)}
      />
      {open.value && text.value.trim() !== '' && (
        <ul id="found" role="listbox" aria-label="Functions found">
          {rows.map((f, i) => (
            <li key={f.id} id={`found-${i}`} role="option" aria-selected={i === at.value} class={i === at.value ? 'current' : ''} onMouseDown={(e) => (e.preventDefault(), take(i))}>
              <span class="name">{shortName(f.name, 70)}</span>
              <span class="faint">
                {percent(f.total / (summary.value.total || 1))} · {baseName(f.image)}
              </span>
            </li>
          ))}
          {answer.value && rows.length === 0 && <li class="faint">No function has “{text.value}” in its name.</li>}
          {answer.value && answer.value.count > rows.length && <li class="faint">{answer.value.count - rows.length} more</li>}
        </ul>
      )}
    </div>
  );
}
