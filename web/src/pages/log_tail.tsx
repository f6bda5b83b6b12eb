// The last lines of a step's log, for a first look without opening it.
import { useLocation } from 'preact-iso';
import { useList, useResource } from '../api/resource';
import type { Attempt, LogPage, Step } from '../api/types';
import { causeOf } from '../lib/attempt';
import { api, formatLines, withQuery } from '../lib/url';
import { Card, Load } from '../ui/parts';
import { LineText } from './run_log';

const LINES = 10;
const EVERY_MS = 2000;

export function LogTail({ step }: { step: Step }) {
  const { url } = useLocation();
  const ranks = useList<Attempt>(step.nodes > 1 && step.ended_at ? api(['steps', step.id, 'attempts'], { limit: 500 }) : undefined);
  const rank = (ranks.data && causeOf(ranks.data, step)?.rank) || undefined;
  const page = useResource<LogPage>(step.attempts > 0 ? api(['steps', step.id, 'log'], { tail: LINES, limit: LINES, rank }) : undefined, {
    every: step.ended_at ? undefined : EVERY_MS,
  });
  if (step.attempts === 0) return null;
  const logs = withQuery(url, { tab: 'logs', step: step.name, rank: rank === undefined ? undefined : String(rank), attempt: undefined });
  return (
    <Card title={step.nodes > 1 ? `End of the log of rank ${rank ?? 0}` : 'End of its log'} cls="flush" after={<a href={page.data?.last ? logs + formatLines({ first: page.data.last, last: page.data.last }) : logs}>Whole log</a>}>
      <Load of={page} rows={3}>
        {(p) =>
          p.lines.length === 0 ? (
            <p class="dim pad">Nothing has been written{p.complete ? '' : ' yet'}.</p>
          ) : (
            <div class="log-tail" tabIndex={0} role="region" aria-label="End of the log">
              {p.lines.map((l) => (
                <div key={l.line} class={`log-row from-${l.stream}`}>
                  <span class="log-no">{l.line}</span>
                  <LineText text={l.text} />
                </div>
              ))}
            </div>
          )
        }
      </Load>
    </Card>
  );
}
