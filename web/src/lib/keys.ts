// The keyboard map. A key is heard only outside fields and without modifiers; nothing that destroys has a key, and
// all of it can be switched off (WCAG 2.1.4).
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

const KEY = 'tidemill.keys';
export const keysOn = signal(localStorage.getItem(KEY) !== 'off');
export function setKeys(on: boolean) {
  keysOn.value = on;
  localStorage.setItem(KEY, on ? 'on' : 'off');
}

export interface Binding {
  /** "f", "?", or a sequence "g r". */
  keys: string;
  does: string;
  run: () => void;
}

const bindings = new Set<Binding>();
export const boundKeys = () => [...bindings];

const SEQUENCE_MS = 1200;
let pending = '';
let at = 0;

const inField = (t: EventTarget | null) =>
  t instanceof HTMLElement && (t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName) || !!t.closest('dialog[open]'));

function pressed(e: KeyboardEvent) {
  if (!keysOn.value || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || inField(e.target)) return;
  const now = Date.now();
  const sequence = pending && now - at < SEQUENCE_MS ? `${pending} ${e.key}` : e.key;
  const hit = [...bindings].reverse().find((b) => b.keys === sequence);
  const starts = [...bindings].some((b) => b.keys.startsWith(`${e.key} `));
  pending = !hit && starts ? e.key : '';
  at = now;
  if (!hit) return;
  e.preventDefault();
  hit.run();
}

addEventListener('keydown', pressed);

export function useKeys(list: Binding[]) {
  const latest = useRef(list);
  latest.current = list;
  useEffect(() => {
    const mine = list.map((b, i): Binding => ({ ...b, run: () => latest.current[i]?.run() }));
    for (const b of mine) bindings.add(b);
    return () => {
      for (const b of mine) bindings.delete(b);
    };
  }, [list.map((b) => b.keys).join()]);
}
