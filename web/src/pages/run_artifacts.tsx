// Files that a step has logged, folder by folder. They are only ever downloaded: the server sends them with names
// and types of its own choosing, never as pages of this site.
import { useLocation } from 'preact-iso';
import { useList } from '../api/resource';
import type { Artifact, Step } from '../api/types';
import { bytes } from '../lib/format';
import { api, below, withQuery } from '../lib/url';
import { Icon } from '../ui/icons';
import { Card, Empty, Load, More, useQuery } from '../ui/parts';

const base = (path: string) => path.slice(path.lastIndexOf('/') + 1);

function Folders({ path }: { path: string }) {
  const { url } = useLocation();
  const parts = path ? path.split('/') : [];
  return (
    <nav class="crumbs" aria-label="Folder">
      <a href={withQuery(url, { path: undefined })}>artifacts</a>
      {parts.map((p, i) => (
        <a href={withQuery(url, { path: parts.slice(0, i + 1).join('/') })}>{p}</a>
      ))}
    </nav>
  );
}

function Entry({ artifact, tracking }: { artifact: Artifact; tracking: string }) {
  const { url } = useLocation();
  const href = artifact.is_dir ? withQuery(url, { path: artifact.path }) : below(api(['tracking-runs', tracking, 'artifacts']), artifact.path);
  return (
    <tr>
      <td>
        <a href={href} data-row download={artifact.is_dir ? undefined : base(artifact.path)}>
          <Icon name={artifact.is_dir ? 'folder' : 'file'} /> {base(artifact.path)}
        </a>
      </td>
      <td class="num nowrap">{bytes(artifact.size)}</td>
      <td class="mono dim" title={artifact.digest}>{artifact.digest?.slice(0, 16)}</td>
    </tr>
  );
}

export function RunArtifacts({ step }: { step: Step }) {
  const [query] = useQuery();
  const path = query.path ?? '';
  const tracking = step.tracking_run;
  const artifacts = useList<Artifact>(tracking ? api(['tracking-runs', tracking, 'artifacts'], { path }) : undefined, {
    on: (e) => e.subject === tracking || e.parent === step.id,
    every: step.ended_at ? undefined : 6000,
  });
  if (!tracking) return <Empty title={`${step.name} has not started`}>Artifacts appear as soon as the step logs some.</Empty>;
  return (
    <Card title={<Folders path={path} />} cls="flush">
      <Load of={artifacts}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={path ? 'This folder is empty' : `${step.name} has logged no artifacts`}>
              A step logs files with MLflow's <code>log_artifact</code>; what it hands on to other steps are outputs, not artifacts.
            </Empty>
          ) : (
            <div class="table-wrap">
              <table class="data">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col" class="num">Size</th>
                    <th scope="col">SHA-256</th>
                  </tr>
                </thead>
                <tbody>
                  {[...list].sort((a, b) => Number(b.is_dir) - Number(a.is_dir) || (a.path < b.path ? -1 : 1)).map((a) => (
                    <Entry key={a.path} artifact={a} tracking={tracking} />
                  ))}
                </tbody>
              </table>
              <More more={artifacts.more} />
            </div>
          )
        }
      </Load>
    </Card>
  );
}
