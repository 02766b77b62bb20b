// What stands where an answer will be: nothing for a blink, then what is waited for and since when; or what went wrong.
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Answer } from '../data/ask';

export function Waiting({ since, what }: { since: number | undefined; what: string }) {
  const [waited, setWaited] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setWaited(performance.now() - (since ?? performance.now())), 100);
    return () => clearInterval(timer);
  }, [since]);
  if (waited < 250) return null;
  return (
    <div class="waiting" role="status">
      <div class="progress" />
      {what} … {(waited / 1000).toFixed(1)} s
    </div>
  );
}

export function Failed({ children }: { children: ComponentChildren }) {
  return (
    <div class="failed" role="alert">
      {children}
    </div>
  );
}

// The answer, or what stands in its place.
export function With<T>(props: { answer: Answer<T>; what: string; children: (value: T) => ComponentChildren }) {
  const { value, error, since } = props.answer;
  if (error) return <Failed>{error}</Failed>;
  if (value === undefined) return <Waiting since={since} what={props.what} />;
  return <>{props.children(value)}</>;
}
