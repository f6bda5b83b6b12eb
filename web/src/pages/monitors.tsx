import { useRoute } from 'preact-iso';
import { about, useList } from '../api/resource';
import type { Monitor, Window } from '../api/types';
import { number, percent, span } from '../lib/format';
import { api, paths, versionPath } from '../lib/url';
import { Empty, Load, More, PageHead, State } from '../ui/parts';

/** How the newest closed window looks. */
function Newest({ project, monitor }: { project: string; monitor: Monitor }) {
  const windows = useList<Window>(api(['projects', project, 'monitors', monitor.name, 'windows'], { limit: 3 }), { on: about('window', 'decision') });
  const w = windows.data?.find((x) => x.state === 'closed');
  if (!w) return <td colSpan={4} class="dim">{windows.loading ? '' : 'no window has closed yet'}</td>;
  return (
    <>
      <td class="nowrap">{span(w.start, w.end)}</td>
      <td><State of={w.severity} label={w.severity === 'ok' ? 'all is well' : undefined} /></td>
      <td class="num">
        {number(w.performance)}
        {w.level !== null && w.level > 0 && w.performance !== null && <span class="sub inline">{number(w.performance / w.level)}× the champion’s</span>}
      </td>
      <td class="num">{percent(w.drift_share)}</td>
    </>
  );
}

export function Monitors() {
  const project = useRoute().params.project as string;
  const monitors = useList<Monitor>(api(['projects', project, 'monitors'], { limit: 100 }), { on: about('monitor', 'alias') });
  return (
    <>
      <PageHead title="Monitors" />
      <Load of={monitors}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={`${project} has no monitors yet`} command="tidemill apply -f monitor.yaml">
              A monitor compares what a model sees in production with what it was trained on, and its error with what the gate measured. Its policy decides when to warn and when to retrain.
            </Empty>
          ) : (
            <div class="table-wrap card flush">
              <table class="data">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Watches</th>
                    <th scope="col">Newest window</th>
                    <th scope="col">State</th>
                    <th scope="col" class="num">Error</th>
                    <th scope="col" class="num">Drifted</th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((m) => (
                    <tr key={m.id}>
                      <td><a class="strong" data-row href={paths.monitor(project, m.name)}>{m.name}</a></td>
                      <td>
                        {m.champion ? <a href={versionPath(project, m.champion)}>{m.champion.replace('/', ' v')}</a> : <a href={paths.model(project, m.model)}>{m.model}</a>}
                        <div class="sub">{m.alias}</div>
                      </td>
                      <Newest project={project} monitor={m} />
                    </tr>
                  ))}
                </tbody>
              </table>
              <More more={monitors.more} />
            </div>
          )
        }
      </Load>
    </>
  );
}
