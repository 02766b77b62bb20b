// The text of a node: a datum, the name, a datum.
import type { FunctionRow } from '../data/types';
import { shortName } from '../format';
import type { Datum } from '../views/columns';

export interface Label {
  left: string;
  name: string;
  right: string;
}

export const character = 7.23; // pixels, of 12 px monospace
export const padding = 8;
export const markWidth = 14;

export function labelOf(f: FunctionRow, how: { whole: number; left: Datum; right: Datum; length: number }): Label {
  return { left: how.left.text(f, how.whole), name: shortName(f.name, how.length), right: how.right.text(f, how.whole) };
}

// Where the parts begin, from the left edge.
export function placesOf(label: Label) {
  const name = padding + (label.left ? (label.left.length + 1.2) * character : 0);
  const right = name + (label.name.length + 1.2) * character;
  const mark = label.right ? right + label.right.length * character + 4 : right - 1.2 * character + 4;
  return { left: padding, name, right, mark };
}

export function widthOf(label: Label): number {
  return placesOf(label).mark + markWidth + 2;
}
