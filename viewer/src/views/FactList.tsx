// What there is to say of a thing, by name.
import type { ComponentChildren } from 'preact';

export type Fact = [name: string, value: ComponentChildren];

export const FactList = ({ facts, wide = false }: { facts: Fact[]; wide?: boolean }) => (
  <dl class={wide ? 'facts wide' : 'facts'}>
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);
