import { describe, expect, it } from 'vitest';
import { fitting } from '../src/table/Table';

describe('a table that is too narrow', () => {
  const columns = [
    { key: 'self', width: '5em' },
    { key: 'cycles', width: '5em', spare: 2 },
    { key: 'calls', width: '5em', spare: 1 },
    { key: 'name', width: 'minmax(10em, 1fr)' },
  ];
  const at = (width: number) => fitting(columns, width).map((c) => c.key).join(' ');
  it('does without what can be spared, in order', () => {
    expect(at(25 * 13)).toBe('self cycles calls name');
    expect(at(24 * 13)).toBe('self calls name');
    expect(at(15 * 13)).toBe('self name');
    expect(at(10)).toBe('self name');
  });
});
