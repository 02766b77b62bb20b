import { describe, expect, it } from 'vitest';
import { cut, percent, printable, seconds, shortName, withUnit } from '../src/format';

describe('figures', () => {
  it('have three digits that count', () => {
    expect([950, 9999, 12345, 1234567, 4.56e9, 999600, 0, -1234567].map(withUnit)).toEqual(
      ['950', '9,999', '12.3 k', '1.23 M', '4.56 G', '1.00 M', '0', '−1.23 M']);
    expect([2.5, 0.0039, 4.2e-5, 7e-9, 0].map(seconds)).toEqual(['2.50 s', '3.90 ms', '42.0 µs', '7.00 ns', '0 s']);
    expect([0, 0.1234, 0.00001, 1, -0.05].map(percent)).toEqual(['·', '12.34 %', '<0.01 %', '100.00 %', '−5.00 %']);
  });
});

describe('names', () => {
  it('lose template arguments, parameters, outer scopes, the middle: in this order', () => {
    const name = 'project::util::Map<std::string, std::vector<int>>::find(std::string const&)';
    expect(shortName(name, 0)).toBe(name);
    expect(shortName(name, 60)).toBe('project::util::Map<…>::find(std::string const&)');
    expect(shortName(name, 40)).toBe('project::util::Map<…>::find(…)');
    expect(shortName(name, 20)).toBe('…::Map<…>::find(…)');
    expect(shortName('fibonacci(int)', 10)).toBe('fibonacci');
    expect(shortName('project::Class::method(int)', 9)).toBe('…::method');
    expect(shortName('project::Class::method(int)', 6)).toBe('method');
    expect(shortName('fibonacci(int)', 7)).toBe('fib…cci');
    expect(shortName('n'.repeat(10000), 11)).toBe('nnnnn…nnnnn');
    expect(shortName('a::operator<<(b<c>)', 16)).toBe('a::operator<<(…)');
    expect(shortName('operator->', 8)).toHaveLength(8);
  });
  it('that are offsets keep them', () => {
    expect(shortName('libsqlite3.so.0.8.6+0xfc9b0', 16)).toBe('libsqli…+0xfc9b0');
    expect(shortName('libsqlite3.so.0.8.6+0xfc9b0', 9)).toBe('…+0xfc9b0');
    expect(shortName('libsqlite3.so.0.8.6+0xfc9b0', 8)).toHaveLength(8);
    expect(shortName('a(b+0x1)', 7)).toBe('a(…)');
  });
  it('that are sentences are cut at their end', () => {
    expect(cut('the run was cut short', 8)).toBe('the run…');
    expect(cut('short', 5)).toBe('short');
  });
  it('obey nobody', () => {
    expect(printable('a\n<script>\x1b[31m')).toBe('a·<script>·[31m');
  });
});
