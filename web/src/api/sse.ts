// Server-sent events over fetch. The browser's EventSource hears only event names that it was told beforehand and
// hides the status of a refusal; ours hears all names, tells 401 from a lost connection, and says when it retries.

export interface SseMessage {
  id: string;
  event: string;
  data: string;
}

/** Cuts a stream of text into events (WHATWG HTML, "event stream interpretation"). */
export class SseParser {
  private rest = '';
  private data: string[] = [];
  private event = '';
  private id = '';
  retry: number | undefined;

  push(text: string): SseMessage[] {
    const out: SseMessage[] = [];
    // A chunk that ends in CR waits, since the LF of a CR LF may still come.
    const all = this.rest + text;
    const end = all.endsWith('\r') ? all.length - 1 : all.length;
    const lines = all.slice(0, end).split(/\r\n|\n|\r/);
    this.rest = (lines.pop() ?? '') + all.slice(end);
    for (const line of lines) {
      if (line !== '') this.field(line);
      else this.dispatch(out);
    }
    return out;
  }

  private dispatch(out: SseMessage[]) {
    if (this.data.length > 0) out.push({ id: this.id, event: this.event || 'message', data: this.data.join('\n') });
    this.data = [];
    this.event = '';
  }

  private field(line: string) {
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.data.push(value);
    else if (name === 'event') this.event = value;
    else if (name === 'id' && !value.includes('\0')) this.id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) this.retry = Number(value);
  }
}

export interface StreamOptions {
  /** The address to open, asked at each attempt, so that it can say where to go on. */
  url: () => string;
  onMessage: (m: SseMessage) => void;
  /** up: connected; down: lost, with the seconds until the next attempt. */
  onState?: (up: boolean, retryIn: number) => void;
  /** A refusal that no retry mends. */
  onRefused?: (status: number) => void;
}

const RETRY_MIN = 1000;
const RETRY_MAX = 30000;

/** Follows a stream until the returned function is called; reconnects by itself. */
export function stream(o: StreamOptions): () => void {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wait = RETRY_MIN;
  let lastId = '';

  const open = async (): Promise<void> => {
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (lastId) headers['Last-Event-ID'] = lastId;
    const res = await fetch(o.url(), { headers, credentials: 'same-origin', signal: abort.signal });
    if (!res.ok || !res.body) {
      const final = res.status >= 400 && res.status < 500 && res.status !== 429;
      if (!final) throw new Error(`status ${res.status}`);
      abort.abort();
      o.onRefused?.(res.status);
      return;
    }
    o.onState?.(true, 0);
    const parser = new SseParser();
    const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      wait = parser.retry ?? RETRY_MIN;
      for (const m of parser.push(value)) {
        lastId = m.id || lastId;
        o.onMessage(m);
      }
    }
    throw new Error('the stream ended');
  };
  const run = () => {
    open().catch(() => {
      if (abort.signal.aborted) return;
      o.onState?.(false, Math.ceil(wait / 1000));
      timer = setTimeout(run, wait);
      wait = Math.min(wait * 2, RETRY_MAX);
    });
  };
  run();
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}
