// A window opened: its numbers, and every metric of every feature, or of one.
import { useList } from '../api/resource';
import type { Decision, DriftValue, Monitor, Window } from '../api/types';
import { count, number, percent, span } from '../lib/format';
import { real } from '../lib/heat';
import { api, versionPath } from '../lib/url';
import { Card, Facts, Load, State, useQuery } from '../ui/parts';
import { DecisionCard } from './decision_parts';

const times = (v: DriftValue) => {
  const value = real(v.value ?? undefined);
  return value !== undefined && v.threshold ? value / v.threshold : -1;
};

const Row = ({ v }: { v: DriftValue }) => (
  <tr>
    <td>{v.feature || <em>the window</em>}</td>
    <td>{v.metric.replace(/_/g, ' ')}</td>
    <td>{v.baseline}</td>
    <td class="num">{number(v.value)}</td>
    <td class="num">{number(v.threshold)}</td>
    <td class="num">{number(v.critical)}</td>
    <td class="num">{number(v.p)}</td>
    <td>{v.drifted ? <State of="warn" label="drifted" /> : v.status === 'ok' ? <span class="dim">ok</span> : v.status.replace(/_/g, ' ')}</td>
  </tr>
);

function Metrics({ base, feature }: { base: string[]; feature: string | undefined }) {
  const values = useList<DriftValue>(api([...base, 'metrics']));
  return (
    <Load of={values} rows={6}>
      {(list) => {
        const shown = (feature ? list.filter((v) => v.feature === feature) : list).slice().sort((a, b) => Number(b.drifted) - Number(a.drifted) || times(b) - times(a));
        if (shown.length === 0) return <p class="dim">{feature ? `There is nothing about ${feature} in this window.` : 'This window has no metrics: it has not been closed.'}</p>;
        return (
          <div class="table-wrap scroll">
            <table class="data compact">
              <thead>
                <tr>
                  <th scope="col">Feature</th>
                  <th scope="col">Metric</th>
                  <th scope="col">Against</th>
                  <th scope="col" class="num">Value</th>
                  <th scope="col" class="num">Threshold</th>
                  <th scope="col" class="num" title="What noise alone reaches">Noise</th>
                  <th scope="col" class="num">p</th>
                  <th scope="col">Verdict</th>
                </tr>
              </thead>
              <tbody>
                {shown.map((v) => (
                  <Row key={`${v.feature}/${v.metric}/${v.baseline}`} v={v} />
                ))}
              </tbody>
            </table>
          </div>
        );
      }}
    </Load>
  );
}

export function WindowPanel({ project, monitor, windows, id }: { project: string; monitor: Monitor; windows: Window[]; id: string }) {
  const [query, setQuery] = useQuery();
  const base = ['projects', project, 'monitors', monitor.name];
  const decisions = useList<Decision>(api([...base, 'decisions'], { limit: 200 }));
  const w = windows.find((x) => x.id === id);
  if (!w) return null;
  const mine = (decisions.data ?? []).filter((d) => d.window_id === id);
  return (
    <Card
      cls="panel"
      title={
        <>
          {span(w.start, w.end)} {query.feature && <span class="chip">{query.feature}</span>} <State of={w.state === 'open' ? 'open' : w.severity} />
        </>
      }
      after={
        <>
          {query.feature && (
            <button type="button" class="small" onClick={() => setQuery({ feature: undefined })}>
              All features
            </button>
          )}
          <button type="button" class="small" onClick={() => setQuery({ window: undefined, feature: undefined })}>
            Close
          </button>
        </>
      }
    >
      <Facts
        list={[
          { name: 'Rows', value: <span class="num">{count(w.rows)}</span> },
          { name: 'With a label', value: <span class="num">{count(w.labelled)}</span> },
          !!w.left_out && { name: 'Too large to be measured', value: <strong class="num">{count(w.left_out)}</strong> },
          w.performance !== null && { name: 'Error', value: <strong class="num">{number(w.performance)}</strong> },
          w.level !== null && { name: 'Champion on its holdout', value: <span class="num">{number(w.level)}</span> },
          w.drift_share !== null && { name: 'Features drifted', value: <span class="num">{percent(w.drift_share)}</span> },
          !!w.model_version && { name: 'Compared with', value: <a href={versionPath(project, w.model_version ?? '')}>{w.model_version?.replace('/', ' v')}</a> },
          w.revision > 1 && { name: 'Closed', value: `${w.revision} times` },
        ]}
      />
      {!query.feature && mine.length > 0 && (
        <ol class="decisions">
          {mine.map((d) => (
            <DecisionCard key={d.id} project={project} decision={d} />
          ))}
        </ol>
      )}
      <Metrics base={[...base, 'windows', id]} feature={query.feature} />
    </Card>
  );
}
