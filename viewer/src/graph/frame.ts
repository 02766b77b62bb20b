import type { Box, Layout } from './layout';

// The part that is seen: from (x, y) of the layout, in a pane of width × height pixels.
export interface Frame {
  x: number;
  y: number;
  width: number;
  height: number;
  scale: number;
}

// Of a new layout: all of it, where names can be read then; else the beginning of the river, and only as far from it as the selected
// function needs to be seen. Where there is more river to be seen, nothing beyond its banks is.
const margin = 24;
export function firstFrame(layout: Pick<Layout, 'width' | 'height'>, pane: Frame, begin: Box | undefined, selected: Box | undefined): Frame {
  const all = Math.min(pane.width / (layout.width + margin), pane.height / (layout.height + margin));
  const scale = all >= 0.88 ? Math.min(all, 1.15) : 1;
  const along = (size: number, room: number, first: number | undefined, box: [middle: number, size: number] | undefined) => {
    const least = -margin / 2;
    const most = size + margin / 2 - room;
    if (most <= least) return (size - room) / 2;
    let at = (first ?? size / 2) - room / 2;
    if (box) at = Math.min(box[0] - box[1] / 2 - margin, Math.max(box[0] + box[1] / 2 + margin - room, at));
    return Math.min(most, Math.max(least, at));
  };
  const [width, height] = [pane.width / scale, pane.height / scale];
  return {
    ...pane,
    scale,
    x: along(layout.width, width, begin?.x, selected && [selected.x, selected.width]),
    y: along(layout.height, height, begin?.y, selected && [selected.y, selected.height]),
  };
}
