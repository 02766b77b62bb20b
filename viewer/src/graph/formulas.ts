// The figures of the call graph: spec 2, V5 and V7. Shares are fractions, from 0 to 1.

// What the time filter can be set to: 0 to 20 %, finer below 2 %.
export const filterSteps: number[] = [
  0, 0.0001, 0.0002, 0.0005,
  ...Array.from({ length: 20 }, (_, i) => (i + 1) / 1000),
  ...Array.from({ length: 18 }, (_, i) => (i + 3) / 100),
];

export const functionsAtFirst = 30;

// Sums of shares are rounded; a share that is a step must not go to the next one.
const epsilon = 1e-9;

export function roundUpToStep(share: number): number {
  return filterSteps.find((step) => step >= share - epsilon) ?? filterSteps.at(-1)!;
}

// So that `n` functions show: the share of the n-th, rounded up to a step. `totals` has the largest first.
export function initialFilter(totals: readonly number[], whole: number, n = functionsAtFirst): number {
  const nth = totals[n - 1];
  return nth === undefined || whole <= 0 ? 0 : roundUpToStep(nth / whole);
}

// How many functions a filter shows.
export function countAbove(totals: readonly number[], whole: number, filter: number): number {
  return totals.filter((total) => isAbove(total, whole, filter)).length;
}

export function isAbove(total: number, whole: number, filter: number): boolean {
  return filter === 0 || (whole > 0 && total / whole >= filter - epsilon);
}

export type Weighting = 'none' | 'linear' | 'log' | 'adaptive';
export const widest = 9; // of logarithmic and adaptive arcs

// The width of an arc in pixels, by its share and the smallest share that is shown.
export function arcWidth(weighting: Weighting, share: number, smallest: number): number {
  const t = Math.min(1, Math.max(0, share));
  switch (weighting) {
    case 'none':
      return 1;
    case 'linear': // rounded up to 10 %: 1 to 10
      return Math.min(10, Math.max(1, Math.ceil(t * 10 - epsilon)));
    case 'log':
      return Math.min(widest, Math.max(1, Math.log2(1000 * t + 0.0001)));
    case 'adaptive': // the smallest has 1, all of the time has `widest`
      if (t <= 0) return 1;
      if (smallest <= 0 || smallest >= 1) return t >= 1 ? widest : 1;
      return Math.max(1, 1 + ((widest - 1) * Math.log(t / smallest)) / Math.log(1 / smallest));
  }
}
