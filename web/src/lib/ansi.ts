// Colours of a log line: escape sequences become tokens with classes, never markup. 256 and true colours are brought
// to the nearest of the sixteen that the theme has, whose contrast is known.
import Anser from 'anser';

export interface Token {
  text: string;
  /** Classes of the span; empty: plain text. */
  cls: string;
}

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;
const RGB: [number, number, number][] = [
  [0, 0, 0], [187, 0, 0], [0, 187, 0], [187, 187, 0], [0, 0, 187], [187, 0, 187], [0, 187, 187], [187, 187, 187],
];

// Everything that is no colour (cursor movement, titles, links) is dropped: CSI but SGR, OSC, and single escapes.
const NOT_SGR = /\x1b\[[0-9;:?<=>]*[ -/]*[@-ln-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[()][A-Z0-9]|\x1b[=>78DEHMNOZc]/g;
// What is left of the C0 controls would be drawn as boxes.
const CONTROLS = /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]/g;

function nearest(rgb: string): string {
  const [r = 0, g = 0, b = 0] = rgb.split(',').map(Number);
  const max = Math.max(r, g, b);
  const min = Math.min(r, g, b);
  if (max - min < 32) return max < 64 ? 'black' : max > 160 ? 'white' : 'bright-black';
  // Only the hue counts: stretched to full brightness before it is compared.
  const k = 187 / max;
  let best = 1;
  let least = Infinity;
  for (let i = 1; i < 7; i++) {
    const [R, G, B] = RGB[i] as [number, number, number];
    const d = (r * k - R) ** 2 + (g * k - G) ** 2 + (b * k - B) ** 2;
    if (d < least) [least, best] = [d, i];
  }
  return NAMES[best] as string;
}

const palette = (n: number) => (n < 8 ? (NAMES[n] as string) : n < 16 ? `bright-${NAMES[n - 8]}` : nearest(cube(n)));

function cube(n: number): string {
  if (n >= 232) return Array(3).fill(8 + (n - 232) * 10).join(',');
  const level = (v: number) => (v === 0 ? 0 : 55 + v * 40);
  const i = n - 16;
  return [level(Math.floor(i / 36)), level(Math.floor(i / 6) % 6), level(i % 6)].join(',');
}

function colour(name: string, truecolor: string): string {
  if (name === 'ansi-truecolor') return nearest(truecolor);
  const p = /^ansi-palette-(\d+)$/.exec(name);
  return p ? palette(Number(p[1])) : name.replace(/^ansi-/, '');
}

function classes(e: Anser.AnserJsonEntry): string {
  const out: string[] = [];
  if (e.fg) out.push(`fg-${colour(e.fg, e.fg_truecolor)}`);
  if (e.bg) out.push(`bg-${colour(e.bg, e.bg_truecolor)}`);
  for (const d of e.decorations) if (d !== 'blink' && d !== 'hidden') out.push(`ansi-${d}`);
  return out.join(' ');
}

export function tokens(line: string): Token[] {
  const text = line.replace(NOT_SGR, '').replace(CONTROLS, '');
  if (!text.includes('\x1b')) return text ? [{ text, cls: '' }] : [];
  return Anser.ansiToJson(text, { json: true, use_classes: true, remove_empty: true }).map((e) => ({
    text: e.content.replace(/\x1b/g, ''),
    cls: classes(e),
  }));
}
