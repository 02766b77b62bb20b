// Quiet colours that mean something: one hue for an image, or how a frame changed.

export interface Palette {
  frame: (image: string, id: number) => string;
  changed: (now: number, before: number) => string;
  text: string;
  faint: string;
  line: string;
  match: string;
  selected: string;
  background: string;
  whole: string;
}

const hues = [212, 28, 160, 268, 95, 330, 188, 48]; // of the images with the most time, in this order; all others are grey
export const mostImages = hues.length;

export function paletteOf(dark: boolean, images: string[]): Palette {
  const hueOf = new Map(images.slice(0, mostImages).map((image, i) => [image, hues[i]!]));
  const frame = (image: string, id: number) => {
    const shade = ((id * 2654435761) >>> 0) % 9;
    const hue = hueOf.get(image);
    if (hue === undefined) return dark ? `hsl(0 0% ${27 + shade}%)` : `hsl(0 0% ${84 + shade * 0.8}%)`;
    return dark ? `hsl(${hue} 26% ${27 + shade}%)` : `hsl(${hue} 48% ${83 + shade * 0.8}%)`;
  };
  const changed = (now: number, before: number) => {
    const most = Math.max(now, before);
    const part = most > 0 ? (now - before) / most : 0;
    const strength = Math.round(100 * Math.sqrt(Math.abs(part)));
    const hue = part > 0 ? 14 : 214;
    if (strength < 4) return dark ? 'hsl(0 0% 28%)' : 'hsl(0 0% 92%)';
    return dark ? `hsl(${hue} ${20 + strength * 0.4}% ${26 + strength * 0.12}%)` : `hsl(${hue} ${40 + strength * 0.4}% ${93 - strength * 0.2}%)`;
  };
  return dark
    ? { frame, changed, text: '#e8e8e6', faint: '#9b9b97', line: '#17181a', match: '#b8860b', selected: '#79b8f5', background: '#17181a', whole: '#2a2c2f' }
    : { frame, changed, text: '#1d1f21', faint: '#6a6d70', line: '#ffffff', match: '#ffd75e', selected: '#0b63ad', background: '#ffffff', whole: '#e9eaec' };
}

export function isDark(): boolean {
  const theme = document.documentElement.dataset['theme'];
  return theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
}
