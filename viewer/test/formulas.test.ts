// V5 and V7, clause by clause.
import { describe, expect, it } from 'vitest';
import { arcWidth, countAbove, filterSteps, initialFilter, roundUpToStep } from '../src/graph/formulas';

describe('the time filter', () => {
  it('goes from 0 to 20 %, finer below 2 %', () => {
    expect(filterSteps[0]).toBe(0);
    expect(filterSteps.at(-1)).toBe(0.2);
    const gaps = filterSteps.slice(1).map((step, i) => [step, step - filterSteps[i]!] as const);
    for (const [step, gap] of gaps) expect(gap).toBeLessThanOrEqual(step <= 0.02 ? 0.001001 : 0.010001);
    expect(filterSteps).toEqual([...filterSteps].sort((a, b) => a - b));
  });

  it('is rounded up to the next step; a step stays', () => {
    expect(roundUpToStep(0)).toBe(0);
    expect(roundUpToStep(0.0123)).toBe(0.013);
    expect(roundUpToStep(0.013)).toBe(0.013);
    expect(roundUpToStep(0.0201)).toBe(0.03);
    expect(roundUpToStep(0.7)).toBe(0.2);
    for (const step of filterSteps) expect(roundUpToStep(step)).toBe(step);
  });

  it('opens at the share of the thirtieth function', () => {
    const totals = Array.from({ length: 100 }, (_, i) => 1000 - i * 10); // the thirtieth has 710
    expect(initialFilter(totals, 50000)).toBe(roundUpToStep(710 / 50000));
    expect(initialFilter(totals, 71000)).toBe(0.01); // exactly a step: thirty functions
    expect(countAbove(totals, 71000, 0.01)).toBe(30);
  });

  it('shows fewer than thirty when rounding goes past some, and more with ties', () => {
    const totals = Array.from({ length: 100 }, (_, i) => 1000 - i * 10);
    const filter = initialFilter(totals, 50000); // 1.42 % → 1.5 %
    expect(filter).toBe(0.015);
    expect(countAbove(totals, 50000, filter)).toBe(26);
    const ties = Array.from({ length: 100 }, () => 10);
    expect(countAbove(ties, 1000, initialFilter(ties, 1000))).toBe(100);
  });

  it('shows everything of a program with fewer functions', () => {
    expect(initialFilter([5, 4, 3], 12)).toBe(0);
    expect(initialFilter([], 0)).toBe(0);
    expect(countAbove([5, 4, 0], 12, 0)).toBe(3);
  });
});

describe('arc widths', () => {
  it('none: all the same', () => {
    for (const t of [0, 0.001, 0.5, 1]) expect(arcWidth('none', t, 0.001)).toBe(1);
  });

  it('linear: rounded up to 10 %, 1 to 10 pixels', () => {
    for (let tenth = 1; tenth <= 10; tenth++) {
      expect(arcWidth('linear', tenth / 10, 0)).toBe(tenth);
      expect(arcWidth('linear', tenth / 10 - 0.05, 0)).toBe(tenth);
    }
    expect(arcWidth('linear', 0, 0)).toBe(1);
    expect(arcWidth('linear', 0.101, 0)).toBe(2);
    expect(arcWidth('linear', 1.7, 0)).toBe(10); // recursion can make an arc more than all
  });

  it('logarithmic: min(9, max(1, log2(1000 t + 0.0001)))', () => {
    for (const t of [0, 0.0001, 0.001, 0.002, 0.004, 0.01, 0.1, 0.3, 0.512, 0.9, 1])
      expect(arcWidth('log', t, 0)).toBeCloseTo(Math.min(9, Math.max(1, Math.log2(1000 * t + 0.0001))), 12);
    expect(arcWidth('log', 0, 0)).toBe(1);
    expect(arcWidth('log', 1, 0)).toBe(9);
    expect(arcWidth('log', 0.064, 0)).toBeCloseTo(6, 4);
  });

  it('adaptive: the smallest arc has 1, all of the time has the most', () => {
    for (const smallest of [0.0001, 0.01, 0.2]) {
      expect(arcWidth('adaptive', smallest, smallest)).toBeCloseTo(1, 12);
      expect(arcWidth('adaptive', 1, smallest)).toBeCloseTo(9, 12);
      expect(arcWidth('adaptive', Math.sqrt(smallest), smallest)).toBeCloseTo(5, 12);
    }
    expect(arcWidth('adaptive', 0, 0.1)).toBe(1);
    expect(arcWidth('adaptive', 1, 1)).toBe(9);
  });

  it('grows with time, ever more slowly (logarithmic and adaptive)', () => {
    for (const weighting of ['log', 'adaptive'] as const) {
      const at = (t: number) => arcWidth(weighting, t, 0.01);
      for (let t = 0.02; t < 0.48; t += 0.02) {
        expect(at(t + 0.02)).toBeGreaterThan(at(t));
        expect(at(t + 0.02) - at(t)).toBeLessThanOrEqual(at(t) - at(t - 0.02) + 1e-9);
      }
    }
  });
});
