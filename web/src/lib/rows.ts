// Which rows of a long list are on screen. Rows have one height. A browser caps how tall an element can be (Firefox
// near 17.9 million pixels), so beyond MAX_HEIGHT the scroll bar is scaled: a pixel of it is then several of the list.

export const MAX_HEIGHT = 15_000_000;

export interface Viewport {
  top: number;
  height: number;
}

export interface Rows {
  first: number;
  count: number;
  /** Where the first of these rows is drawn, in the scrolled element. */
  offset: number;
  /** Height of the scrolled element. */
  height: number;
}

export function totalHeight(rows: number, rowHeight: number): number {
  return Math.min(rows * rowHeight, MAX_HEIGHT);
}

export function visibleRows(view: Viewport, rows: number, rowHeight: number, extra = 20): Rows {
  const height = totalHeight(rows, rowHeight);
  const real = rows * rowHeight;
  const room = Math.max(0, height - view.height);
  const top = Math.min(Math.max(0, view.top), room);
  // The real position; when not scaled, the same as top.
  const at = room === 0 ? 0 : (top * Math.max(0, real - view.height)) / room;
  const first = Math.max(0, Math.floor(at / rowHeight) - extra);
  const last = Math.min(rows, Math.ceil((at + view.height) / rowHeight) + extra);
  return { first, count: Math.max(0, last - first), offset: Math.max(0, top - (at - first * rowHeight)), height };
}

/** The scroll position that brings a row (counted from 0) to a third of the view's height. */
export function scrollTo(row: number, view: Viewport, rows: number, rowHeight: number): number {
  const height = totalHeight(rows, rowHeight);
  const real = rows * rowHeight;
  const room = Math.max(0, height - view.height);
  const at = Math.min(Math.max(0, row * rowHeight - view.height / 3), Math.max(0, real - view.height));
  return real <= view.height ? 0 : (at / (real - view.height)) * room;
}

export const atEnd = (view: Viewport, scrolled: number, rowHeight: number) => scrolled - view.top - view.height < rowHeight;
