// Where the lines of a log come from: the backlog's end first, then the tail as it is written, and any part between
// when somebody scrolls there.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type ApiError, get } from '../api/client';
import { asError } from '../api/resource';
import { stream } from '../api/sse';
import type { LogLine, LogPage } from '../api/types';
import { CHUNK, Lines } from '../lib/lines';
import { withQuery } from '../lib/url';

const BACKLOG = 1000;

export interface LogState {
  /** The backlog is here. */
  ready: boolean;
  /** Nothing more will come. */
  complete: boolean;
  dropped: number;
  error: ApiError | undefined;
  /** Seconds until the next try; 0 while connected. */
  lost: number;
}

const START: LogState = { ready: false, complete: false, dropped: 0, error: undefined, lost: 0 };

export interface LogSource {
  lines: Lines;
  state: LogState;
  /** Moves with every change of lines. */
  turn: number;
  /** Fetches what lacks between two lines. */
  want: (first: number, last: number) => void;
  retry: () => void;
}

function parse(data: string): LogLine[] {
  try {
    const lines = (JSON.parse(data) as { lines?: LogLine[] }).lines;
    return Array.isArray(lines) ? lines : [];
  } catch {
    return [];
  }
}

/** base: the address of the log. */
export function useLog(base: string): LogSource {
  const [state, setState] = useState<LogState>(START);
  const [turn, setTurn] = useState(0);
  const [tries, setTries] = useState(0);
  const lines = useMemo(() => new Lines(), [base, tries]);
  const busy = useRef(false);

  // Many lines may come between two frames; they are drawn once.
  const frame = useRef(0);
  const draw = () => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      setTurn((n) => n + 1);
    });
  };

  useEffect(() => {
    const abort = new AbortController();
    let stop: (() => void) | undefined;
    const follow = () => {
      stop = stream({
        url: () => withQuery(base, { follow: 'true', from: String(lines.total + 1) }),
        onMessage: (m) => {
          if (m.event === 'lines') {
            lines.add(parse(m.data)); // also again, while a line grows
            lines.trim(lines.total);
            draw();
          }
          if (m.event === 'end') {
            stop?.();
            setState((s) => ({ ...s, complete: true, lost: 0 }));
          }
        },
        onState: (up, retryIn) => setState((s) => (s.lost === (up ? 0 : retryIn) ? s : { ...s, lost: up ? 0 : retryIn })),
      });
    };
    setState(START);
    get<LogPage>(withQuery(base, { tail: String(BACKLOG), limit: String(BACKLOG) }), abort.signal).then(
      (page) => {
        lines.add(page.lines);
        lines.total = Math.max(lines.total, page.total);
        setState({ ...START, ready: true, complete: page.complete, dropped: page.dropped });
        draw();
        if (!page.complete) follow();
      },
      (e: unknown) => abort.signal.aborted || setState({ ...START, error: asError(e) }),
    );
    return () => {
      abort.abort();
      stop?.();
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, [base, tries]);

  const want = (first: number, last: number) => {
    const from = lines.missing(first, last);
    if (from === undefined || busy.current) return;
    busy.current = true;
    get<LogPage>(withQuery(base, { from: String(from), limit: String(CHUNK) }))
      .then((page) => lines.add(page.lines))
      .catch((e: unknown) => setState((s) => ({ ...s, error: asError(e) })))
      .finally(() => {
        busy.current = false;
        lines.trim(from);
        draw();
      });
  };

  return { lines, state, turn, want, retry: () => setTries((n) => n + 1) };
}
