// One stream of the project's events per tab, shared by all that shows data. It is closed while the tab is hidden,
// because a browser opens six connections to a server at most, all tabs together.
import { signal } from '@preact/signals';
import { stream } from './sse';
import type { ServerEvent } from './types';

type Listener = (e: ServerEvent | null) => void;

const listeners = new Set<Listener>();
let project = '';
let last = 0;
let stop: (() => void) | null = null;

/** Whether changes arrive by themselves; `off` when the server refuses to tell. */
export const live = signal<'on' | 'connecting' | 'off'>('connecting');

function heard(data: string) {
  let e: ServerEvent;
  try {
    e = JSON.parse(data) as ServerEvent;
  } catch {
    return;
  }
  if (typeof e.type !== 'string') return;
  if (typeof e.id === 'number') last = e.id;
  for (const l of listeners) l(e);
}

function start() {
  if (stop || !project || document.hidden) return;
  const path = `/api/v1/projects/${encodeURIComponent(project)}/events`;
  stop = stream({
    url: () => (last ? `${path}?from=${last}` : path),
    onMessage: (m) => heard(m.data),
    onState: (up) => (live.value = up ? 'on' : 'connecting'),
    onRefused: () => (live.value = 'off'),
  });
}

function end() {
  stop?.();
  stop = null;
  live.value = 'connecting';
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) return end();
  start();
  // What happened while nobody looked may be older than the server remembers: all views read anew.
  for (const l of listeners) l(null);
});

export function watchProject(name: string) {
  if (name === project) return;
  end();
  project = name;
  last = 0;
  start();
}

/** Calls back for each event, and with null when anything may have changed. */
export function onEvent(l: Listener): () => void {
  listeners.add(l);
  return () => {
    listeners.delete(l);
  };
}
