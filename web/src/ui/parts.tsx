// The small parts that all pages are made of.
import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import type { ApiError } from '../api/client';
import type { Loaded } from '../api/resource';
import type { Time as TimeText } from '../api/types';
import { ago, duration, time, zoneName } from '../lib/format';
import { type Query, withQuery } from '../lib/url';
import { Icon } from './icons';

/** The address's parameters, and a function that changes some of them. */
export function useQuery(): [Record<string, string>, (change: Query, replace?: boolean) => void] {
  const { url, query, route } = useLocation();
  return [query, (change, replace = false) => route(withQuery(url + location.hash, change), replace)];
}

/** The time, every so many milliseconds, while something needs it. */
export function useNow(active: boolean, every = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [active, every]);
  return active ? now : Date.now();
}

const GLYPHS: Record<string, string> = {
  succeeded: '✓', failed: '✕', pass: '✓', fail: '✕', lost: '✕', cancelled: '⊘', skipped: '⊘', running: '●', finishing: '●', preparing: '◐',
  assigned: '◐', queued: '◷', waiting: '◌', promoted: '✓', refused: '✕', needs_approval: '◷', none: '◌', ok: '✓',
  warn: '▲', alert: '▲', insufficient: '◌', open: '◷', online: '●', offline: '○', draining: '◐', disabled: '⊘',
};

const WORDS: Record<string, string> = { needs_approval: 'needs approval' };

/** A state by sign, word and colour. */
export const State = ({ of, label }: { of: string; label?: string }) => (
  <span class={`state s-${of}`}>
    <span class="glyph" aria-hidden="true">
      {GLYPHS[of] ?? '•'}
    </span>
    {label ?? WORDS[of] ?? of}
  </span>
);

export const Glyph = ({ of }: { of: string }) => (
  <span class={`glyph-only s-${of}`} title={of} role="img" aria-label={of}>
    {GLYPHS[of] ?? '•'}
  </span>
);

export const Time = ({ at, seconds = false }: { at: TimeText | number | null | undefined; seconds?: boolean }) =>
  at ? (
    <time dateTime={new Date(at).toISOString()} title={`${new Date(at).toISOString()} (${ago(new Date(at).toISOString())})`}>
      {time(at, seconds)}
    </time>
  ) : (
    <span class="dim">–</span>
  );

/** How long it took, or takes so far. */
export function Took({ from, to, running }: { from: TimeText | null; to: TimeText | null; running: boolean }) {
  const now = useNow(running && !!from && !to);
  if (!from) return <span class="dim">–</span>;
  const end = to ? Date.parse(to) : running ? now : undefined;
  if (end === undefined) return <span class="dim">–</span>;
  const ms = Math.max(0, end - Date.parse(from));
  return <span title={`${(ms / 1000).toFixed(3)} s`}>{running && !to && ms >= 1000 ? duration(Math.floor(ms / 1000) * 1000).replace('.0 s', ' s') : duration(ms)}</span>;
}

export const ZoneNote = () => <span class="zone">{zoneName()}</span>;

export interface Crumb {
  text: string;
  href?: string;
}

export function PageHead(p: { crumbs?: Crumb[]; title: ComponentChildren; after?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="page-head">
      {p.crumbs && (
        <nav class="crumbs" aria-label="Where this page is">
          {p.crumbs.map((c) => (c.href ? <a href={c.href}>{c.text}</a> : <span>{c.text}</span>))}
        </nav>
      )}
      <div class="title-row">
        <h1 tabIndex={-1}>{p.title}</h1>
        <div class="actions">{p.after}</div>
      </div>
      {p.children}
    </header>
  );
}

export const Card = (p: { title?: ComponentChildren; after?: ComponentChildren; cls?: string; children?: ComponentChildren }) => (
  <section class={`card ${p.cls ?? ''}`}>
    {p.title && (
      <div class="card-head">
        <h2>{p.title}</h2>
        <div class="actions">{p.after}</div>
      </div>
    )}
    {p.children}
  </section>
);

/** What this is, why it is empty, and what fills it. */
export const Empty = (p: { title: string; children?: ComponentChildren; command?: string }) => (
  <div class="empty">
    <p class="empty-title">{p.title}</p>
    {p.children && <p>{p.children}</p>}
    {p.command && (
      <p class="command">
        <code>{p.command}</code>
        <Copy text={p.command} what="the command" />
      </p>
    )}
  </div>
);

export function ErrorBox({ error, retry }: { error: ApiError; retry?: () => void }) {
  const p = error.problem;
  return (
    <div class="error-box" role="alert">
      <p class="error-title">{p.title}</p>
      {p.detail && p.detail !== p.title && <p>{p.detail}</p>}
      {p.errors && p.errors.length > 0 && (
        <ul>
          {p.errors.map((e) => (
            <li>
              <code>{e.pointer}</code> {e.detail}
            </li>
          ))}
        </ul>
      )}
      <p class="error-foot">
        {error.requestId && (
          <>
            request <code>{error.requestId}</code> <Copy text={error.requestId} what="the request id" />
          </>
        )}
        {retry && (
          <button type="button" class="small" onClick={retry}>
            Try again
          </button>
        )}
      </p>
    </div>
  );
}

/** Shows what was loaded; what is old says so, and a failure leaves the rest of the page alone. */
export function Load<T>(p: { of: Loaded<T>; rows?: number; children: (data: T) => ComponentChildren }) {
  const { data, error, reload, at } = p.of;
  if (data === undefined && error) return <ErrorBox error={error} retry={reload} />;
  if (data === undefined) return <Skeleton rows={p.rows ?? 4} />;
  return (
    <>
      {error && (
        <div class="stale" role="status">
          Shown as of {time(at, true)}: {error.message}
          <button type="button" class="small" onClick={reload}>
            Try again
          </button>
        </div>
      )}
      {p.children(data)}
    </>
  );
}

const Skeleton = ({ rows }: { rows: number }) => (
  <div class="skeleton" role="status" aria-label="Loading">
    {Array.from({ length: rows }, () => (
      <span />
    ))}
  </div>
);

export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      // No permission, or plain HTTP: the text is there to be selected by hand.
    }
  };
  return (
    <button type="button" class="ghost icon-only" onClick={copy} title={`Copy ${what}`} aria-label={`Copy ${what}`}>
      {done ? <span aria-hidden="true">✓</span> : <Icon name="copy" />}
    </button>
  );
}

export const More = ({ more }: { more: (() => void) | undefined }) =>
  more ? (
    <div class="more">
      <button type="button" onClick={more}>
        Show more
      </button>
    </div>
  ) : null;

export interface Fact {
  name: string;
  value: ComponentChildren;
}

export const Facts = ({ list }: { list: (Fact | false | undefined)[] }) => (
  <dl class="facts">
    {list.filter((f): f is Fact => !!f).map((f) => (
      <div>
        <dt>{f.name}</dt>
        <dd>{f.value}</dd>
      </div>
    ))}
  </dl>
);

export interface Tab {
  id: string;
  title: string;
  note?: ComponentChildren;
}

/** Tabs are links: each view has its address. */
export function Tabs({ list, at, label }: { list: Tab[]; at: string; label: string }) {
  const { url } = useLocation();
  return (
    <nav class="tabs" aria-label={label}>
      {list.map((t, i) => (
        <a href={withQuery(url, { tab: i === 0 ? undefined : t.id })} aria-current={t.id === at ? 'page' : undefined}>
          {t.title}
          {t.note !== undefined && <span class="tab-note">{t.note}</span>}
        </a>
      ))}
    </nav>
  );
}
