// Lines of a log as far as they are here: pieces of a long file, fetched where somebody looks and let go when they
// are far from there.
import type { LogLine } from '../api/types';

export const CHUNK = 500;
/** Chunks that are kept: 40,000 lines. */
export const CHUNKS_KEPT = 80;

export class Lines {
  private chunks = new Map<number, (LogLine | undefined)[]>();
  /** Number of the last line that there is. */
  total = 0;

  get(line: number): LogLine | undefined {
    return this.chunks.get(chunkOf(line))?.[(line - 1) % CHUNK];
  }

  /** Lines may overlap what is here. Returns how many lay beyond the end so far. */
  add(lines: readonly LogLine[]): number {
    const before = this.total;
    for (const l of lines) {
      const c = chunkOf(l.line);
      let chunk = this.chunks.get(c);
      if (!chunk) this.chunks.set(c, (chunk = []));
      chunk[(l.line - 1) % CHUNK] = l;
      if (l.line > this.total) this.total = l.line;
    }
    return this.total - before;
  }

  /** The first line of the chunk that lacks a line between these two. */
  missing(first: number, last: number): number | undefined {
    for (let line = Math.max(1, first); line <= Math.min(last, this.total); line++)
      if (!this.get(line)) return chunkOf(line) * CHUNK + 1;
    return undefined;
  }

  /** Lets go of what is farthest from a line. */
  trim(near: number) {
    if (this.chunks.size <= CHUNKS_KEPT) return;
    const at = chunkOf(near);
    const far = [...this.chunks.keys()].sort((a, b) => Math.abs(b - at) - Math.abs(a - at));
    for (const c of far.slice(0, this.chunks.size - CHUNKS_KEPT)) this.chunks.delete(c);
  }
}

const chunkOf = (line: number) => Math.floor((line - 1) / CHUNK);
