// Data that a view shows: loaded when its address changes, read again when an event says that it changed, and kept on
// screen, marked as old, when reading it again fails.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get } from './client';
import { onEvent } from './events';
import type { Page, ServerEvent } from './types';

export interface Loaded<T> {
  data: T | undefined;
  error: ApiError | undefined;
  loading: boolean;
  /** When data was read; with an error, how old it is. */
  at: number;
  reload: () => void;
}

export interface ResourceOptions {
  /** Which events make it worth reading again. */
  on?: (e: ServerEvent) => boolean;
  /** Also read again every so many milliseconds, for what has no event. */
  every?: number;
}

const SETTLE_MS = 250;

export function asError(e: unknown): ApiError {
  if (e instanceof ApiError) return e;
  return new ApiError({ title: 'Something went wrong here', status: 0, detail: String(e) }, '');
}

/** `path` undefined: nothing to load yet. */
export function useResource<T>(path: string | undefined, o: ResourceOptions = {}): Loaded<T> {
  return useLoader<T>(path, (signal) => get<T>(path as string, signal), o);
}

export function useLoader<T>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<T>,
  o: ResourceOptions = {},
): Loaded<T> {
  const [state, setState] = useState<{ key: string | undefined; data?: T; error?: ApiError; at: number }>({ key, at: 0 });
  const [turn, setTurn] = useState(0);
  const options = useRef(o);
  options.current = o;
  const reload = () => setTurn((n) => n + 1);

  useEffect(() => {
    if (key === undefined) return;
    const abort = new AbortController();
    load(abort.signal).then(
      (data) => setState({ key, data, at: Date.now() }),
      (e: unknown) => {
        if (abort.signal.aborted) return;
        setState((s) => ({ key, error: asError(e), at: s.at, ...(s.key === key && s.data !== undefined ? { data: s.data } : {}) }));
      },
    );
    return () => abort.abort();
  }, [key, turn]);

  useEffect(() => {
    if (key === undefined) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      // Events come in bursts; one reading answers all of a burst, however long it lasts.
      timer ??= setTimeout(() => {
        timer = undefined;
        reload();
      }, SETTLE_MS);
    };
    const off = onEvent((e) => {
      if (e === null || options.current.on?.(e)) soon();
    });
    return () => {
      off();
      clearTimeout(timer);
    };
  }, [key]);

  useEffect(() => {
    if (!o.every || key === undefined) return;
    const timer = setInterval(() => document.hidden || reload(), o.every);
    return () => clearInterval(timer);
  }, [key, o.every]);

  const mine = state.key === key;
  return {
    data: mine ? state.data : undefined,
    error: mine ? state.error : undefined,
    loading: key !== undefined && (!mine || (state.data === undefined && state.error === undefined)),
    at: state.at,
    reload,
  };
}

export interface LoadedList<T> extends Loaded<T[]> {
  more: (() => void) | undefined;
}

/** A list, page by page: `more` reads the next one. Reading again covers all pages that are shown. */
export function useList<T>(path: string | undefined, o: ResourceOptions = {}): LoadedList<T> {
  const [pages, setPages] = useState({ path, n: 1 });
  const n = pages.path === path ? pages.n : 1;
  const key = path === undefined ? undefined : `${path}#${n}`;
  const kept = useRef<{ path: string | undefined; items: T[]; next: string | undefined }>({ path, items: [], next: undefined });
  const r = useLoader<{ items: T[]; next: string | undefined }>(
    key,
    async (signal) => {
      const items: T[] = [];
      let next: string | undefined;
      for (let i = 0; i < n; i++) {
        const glue = (path as string).includes('?') ? '&' : '?';
        const page = await get<Page<T>>(next ? `${path}${glue}cursor=${encodeURIComponent(next)}` : (path as string), signal);
        items.push(...page.items);
        next = page.next_cursor;
        if (!next) break;
      }
      return { items, next };
    },
    o,
  );
  if (r.data) kept.current = { path, ...r.data };
  const shown = kept.current.path === path && (r.data || n > 1) ? kept.current : undefined;
  return {
    ...r,
    data: shown?.items,
    loading: r.loading && !shown,
    more: shown?.next ? () => setPages({ path, n: n + 1 }) : undefined,
  };
}

/** Whether an event is about one of these kinds of things ("run", "step", …). */
export const about =
  (...kinds: string[]) =>
  (e: ServerEvent): boolean =>
    kinds.some((k) => e.type.startsWith(`${k}.`));
