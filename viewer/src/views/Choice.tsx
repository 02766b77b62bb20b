// One of a few: a radio group, whose arrow keys choose the next.
const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function Choice({ label, value, options, onChange }: { label: string; value: string; options: [string, string][]; onChange: (v: string) => void }) {
  const onKey = (e: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const step = e.ctrlKey || e.metaKey || e.altKey ? undefined : steps[e.key];
    if (step === undefined) return;
    e.preventDefault();
    const at = (options.findIndex(([key]) => key === value) + step + options.length) % options.length;
    (e.currentTarget.children[at] as HTMLElement).focus();
    onChange(options[at]![0]);
  };
  return (
    <div class="choice" role="radiogroup" aria-label={label} onKeyDown={onKey}>
      {options.map(([key, title]) => (
        <button key={key} role="radio" aria-checked={value === key} tabIndex={value === key ? 0 : -1} onClick={() => onChange(key)}>{title}</button>
      ))}
    </div>
  );
}
