import { useList } from '../api/resource';
import type { Series, Step } from '../api/types';
import { number, plural } from '../lib/format';
import { isSystem } from '../lib/metrics';
import { api, choice } from '../lib/url';
import { Chart } from '../ui/chart';
import { Card, Empty, Load, useQuery } from '../ui/parts';

const BUCKETS = 600;

/** A metric with one point says everything in its number. */
const isCurve = (s: Series) => s.points.length > 1;

function Bar({ found, all }: { found: number; all: number }) {
  const [query, setQuery] = useQuery();
  return (
    <div class="filters">
      <label>
        Metrics
        <input data-filter type="search" placeholder="name" value={query.metric ?? ''} onInput={(e) => setQuery({ metric: e.currentTarget.value }, true)} />
      </label>
      <div class="segments" role="group" aria-label="Along">
        <button type="button" aria-pressed={query.x !== 'time'} onClick={() => setQuery({ x: undefined })}>
          by step
        </button>
        <button type="button" aria-pressed={query.x === 'time'} onClick={() => setQuery({ x: 'time' })}>
          by time
        </button>
      </div>
      <label class="toggle">
        <input type="checkbox" checked={query.log === '1'} onChange={(e) => setQuery({ log: e.currentTarget.checked ? '1' : undefined })} /> log scale
      </label>
      <span class="note">{found === all ? plural(all, 'metric') : `${found} of ${plural(all, 'metric')}`}</span>
    </div>
  );
}

const Values = ({ list, title }: { list: Series[]; title: string }) => (
  <Card title={title}>
    <dl class="pairs">
      {list.map((s) => (
        <>
          <dt>{s.key}</dt>
          <dd class="num">{number(s.points[0]?.last)}</dd>
        </>
      ))}
    </dl>
  </Card>
);

const Curves = ({ list, x, log }: { list: Series[]; x: 'step' | 'time'; log: boolean }) => (
  <div class="charts">
    {list.filter(isCurve).map((s) => (
      <Chart key={s.key} series={s} x={x} log={log} />
    ))}
  </div>
);

export function RunMetrics({ step, active }: { step: Step; active: boolean }) {
  const [query] = useQuery();
  const tracking = step.tracking_run;
  const series = useList<Series>(tracking ? api(['tracking-runs', tracking, 'series'], { buckets: BUCKETS }) : undefined, {
    on: (e) => e.subject === tracking || (e.parent === step.id && e.type.startsWith('metric.')),
    every: active ? 3000 : undefined,
  });
  if (!tracking) return <Empty title={`${step.name} has not started`}>Charts appear as soon as the step logs a metric.</Empty>;
  return (
    <Load of={series}>
      {(all) => {
        if (all.length === 0)
          return (
            <Empty title={`${step.name} has logged no metrics`}>
              A step logs them with MLflow's <code>log_metric</code>; <code>MLFLOW_TRACKING_URI</code> is set for it.
            </Empty>
          );
        const wanted = all.filter((s) => s.key.toLowerCase().includes((query.metric ?? '').toLowerCase()));
        const logged = wanted.filter((s) => !isSystem(s));
        const system = wanted.filter(isSystem);
        const x = choice(query.x, ['step', 'time'] as const);
        return (
          <>
            <Bar found={wanted.length} all={all.length} />
            <Curves list={logged} x={x} log={query.log === '1'} />
            {logged.some((s) => !isCurve(s)) && <Values title="Logged once" list={logged.filter((s) => !isCurve(s))} />}
            {system.length > 0 && (
              <section aria-label="What it uses of its host">
                <h2>System</h2>
                <Curves list={system} x="time" log={query.log === '1'} />
                {system.some((s) => !isCurve(s)) && <Values title="Seen once" list={system.filter((s) => !isCurve(s))} />}
              </section>
            )}
            {wanted.length === 0 && <Empty title="No metric has that name">{`The filter “${query.metric}” hides all ${all.length}.`}</Empty>}
          </>
        );
      }}
    </Load>
  );
}
