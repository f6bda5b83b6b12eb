import { useRoute } from 'preact-iso';
import { about, useList, useResource } from '../api/resource';
import type { AliasChange, FileEntry, Json, Model, ModelVersion, Monitor } from '../api/types';
import { bytes, number, shortHash } from '../lib/format';
import { api, below, paths } from '../lib/url';
import { Icon } from '../ui/icons';
import { JsonView, isEmpty, isObject, words } from '../ui/json';
import { Card, Copy, Empty, Facts, Load, More, PageHead, State, Time, ZoneNote, useQuery } from '../ui/parts';

const AliasChip = ({ name }: { name: string }) => <span class={`chip alias ${name === 'champion' ? 'champion' : ''}`}>{name}</span>;

export function Models() {
  const project = useRoute().params.project as string;
  const models = useList<Model>(api(['projects', project, 'models'], { limit: 100 }), { on: about('model', 'model_version', 'alias') });
  return (
    <>
      <PageHead title="Models" />
      <Load of={models}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={`${project} has no models yet`} command="tidemill run submit PIPELINE --follow">
              A pipeline whose file has a <code>model:</code> part registers a version each time that all its steps succeed.
            </Empty>
          ) : (
            <div class="table-wrap card flush">
              <table class="data">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Aliases</th>
                    <th scope="col" class="num">Newest version</th>
                    <th scope="col">Made <ZoneNote /></th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((m) => (
                    <tr key={m.id}>
                      <td>
                        <a class="strong" data-row href={paths.model(project, m.name)}>{m.name}</a>
                        {m.description && <div class="sub">{m.description}</div>}
                      </td>
                      <td>
                        {Object.entries(m.aliases).map(([alias, n]) => (
                          <a href={paths.model(project, m.name, n)} class="plain">
                            <AliasChip name={alias} /> v{n}{' '}
                          </a>
                        ))}
                      </td>
                      <td class="num">{m.latest}</td>
                      <td class="nowrap"><Time at={m.created_at} /></td>
                    </tr>
                  ))}
                </tbody>
              </table>
              <More more={models.more} />
            </div>
          )
        }
      </Load>
    </>
  );
}

const text = (j: Json | undefined) => (typeof j === 'string' ? j.slice(0, 10) : undefined);

export function trainedOn(v: ModelVersion): string {
  const t = isObject(v.training_data) ? v.training_data : {};
  const from = text(t.from);
  const to = text(t.to);
  return from && to ? `${from} – ${to}` : '–';
}

function Versions({ list, at, project }: { list: ModelVersion[]; at: number; project: string }) {
  return (
    <div class="table-wrap">
      <table class="data">
        <thead>
          <tr>
            <th scope="col" class="num">Version</th>
            <th scope="col">Gate</th>
            <th scope="col">Trained on</th>
            <th scope="col" class="num">On its holdout</th>
            <th scope="col">Made <ZoneNote /></th>
          </tr>
        </thead>
        <tbody>
          {list.map((v) => (
            <tr key={v.id} aria-selected={v.number === at}>
              <td class="num nowrap">
                {v.aliases.map((a) => (
                  <>
                    <AliasChip name={a} />{' '}
                  </>
                ))}
                <a class="strong" data-row href={paths.model(project, v.model, v.number)}>v{v.number}</a>
              </td>
              <td><State of={v.verdict} label={v.verdict === 'none' ? 'no gate' : undefined} /></td>
              <td class="nowrap">{trainedOn(v)}</td>
              <td class="num nowrap">{v.level === null ? '–' : `${v.metric ?? ''} ${number(v.level)}`}</td>
              <td class="nowrap"><Time at={v.created_at} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The gate's items first, each with its verdict; then what else it recorded. */
function Gate({ version }: { version: ModelVersion }) {
  const gate = version.gate;
  if (isEmpty(gate))
    return (
      <Card title="Gate">
        <p class="dim">The pipeline has no gate: versions are registered and wait for somebody to move an alias.</p>
      </Card>
    );
  const { items, spec: _spec, ...rest } = isObject(gate) ? gate : { items: gate };
  return (
    <Card title={<>Gate <State of={version.verdict} /></>}>
      {version.verdict_reason && <p class={`reason r-${version.verdict}`}>{version.verdict_reason}</p>}
      {!isEmpty(items) && items !== undefined && <JsonView value={items} />}
      {!isEmpty(rest) && <JsonView value={rest} />}
    </Card>
  );
}

function Lineage({ project, version, monitors }: { project: string; version: ModelVersion; monitors: Monitor[] }) {
  const training = isObject(version.training_data) ? version.training_data : {};
  const dataset = text(training.dataset) ?? '';
  const used = (Array.isArray(version.datasets) ? version.datasets : []).filter(isObject);
  const read = used.find((d) => d.name === dataset || d.dataset === dataset) ?? used[0];
  const number = Number(read?.number ?? training.dataset_version) || undefined;
  const name = String(read?.dataset ?? dataset);
  const watching = monitors.filter((m) => m.model === version.model);
  return (
    <Card title="Where it comes from, and who watches it">
      <ol class="chain">
        {name && (
          <li>
            <span class="chain-kind">Data set</span>
            <a href={paths.dataset(project, name, number)}>{name}{number ? ` v${number}` : ''}</a>
            <span class="sub">{trainedOn(version)}</span>
          </li>
        )}
        {version.run_id && (
          <li>
            <span class="chain-kind">Run</span>
            <a href={paths.run(version.run_id)}>training run</a>
            {version.commit && <span class="sub mono" title={version.commit}>{shortHash(version.commit)}</span>}
          </li>
        )}
        <li class="here">
          <span class="chain-kind">Model version</span>
          <strong>{version.model} v{version.number}</strong>
          <span class="sub">{version.aliases.join(', ') || 'no alias'}</span>
        </li>
        {watching.map((m) => (
          <li>
            <span class="chain-kind">Monitor</span>
            <a href={paths.monitor(project, m.name)}>{m.name}</a>
            <span class="sub">watches {m.alias}</span>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Version({ project, version, monitors }: { project: string; version: ModelVersion; monitors: Monitor[] }) {
  const base = api(['projects', project, 'models', version.model, 'versions', version.number, 'files']);
  const files = useList<FileEntry>(`${base}?limit=100`);
  return (
    <>
      <Lineage project={project} version={version} monitors={monitors} />
      <Gate version={version} />
      <div class="columns">
        <Card title={`Version ${version.number}`}>
          {version.description && <p>{version.description}</p>}
          <Facts
            list={[
              { name: 'Registered', value: <Time at={version.created_at} seconds /> },
              !!version.commit && { name: 'Commit', value: <span class="mono">{shortHash(version.commit)} <Copy text={version.commit ?? ''} what="the commit" /></span> },
              !!version.image_digest && { name: 'Image', value: <span class="mono" title={version.image_digest}>{version.image_digest?.slice(0, 19)}</span> },
            ]}
          />
          {!isEmpty(version.metrics) && (
            <>
              <h3>Metrics of the training</h3>
              <JsonView value={version.metrics} />
            </>
          )}
        </Card>
        <Card title="Files" cls="flush">
          <Load of={files} rows={2}>
            {(list) => (
              <div class="table-wrap">
                <table class="data compact">
                  <tbody>
                    {list.map((f) => (
                      <tr key={f.path}>
                        <td><a href={below(base, f.path)} download={f.path.slice(f.path.lastIndexOf('/') + 1)}><Icon name="file" /> {f.path}</a></td>
                        <td class="num nowrap">{bytes(f.size)}</td>
                        <td class="mono dim" title={f.digest}>{f.digest.slice(0, 12)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </Load>
        </Card>
      </div>
    </>
  );
}

function History({ project, name }: { project: string; name: string }) {
  const changes = useList<AliasChange>(api(['projects', project, 'models', name, 'aliases'], { limit: 50 }), { on: about('alias', 'model', 'model_version') });
  return (
    <Card title="Who had which alias" cls="flush" after={<span class="note">newest first</span>}>
      <Load of={changes} rows={2}>
        {(list) =>
          list.length === 0 ? (
            <p class="dim pad">No alias has been given yet.</p>
          ) : (
            <ol class="history">
              {list.map((c) => (
                <li key={c.id}>
                  <div>
                    <AliasChip name={c.alias} />{' '}
                    {c.previous !== null && <><a href={paths.model(project, name, c.previous)}>v{c.previous}</a> → </>}
                    {c.number === null ? 'removed' : <a href={paths.model(project, name, c.number)}>v{c.number}</a>}{' '}
                    <span class="dim">by {words(c.cause)}{c.actor ? `, ${c.actor}` : ''}</span>
                  </div>
                  {c.note && <div class="text">{c.note}</div>}
                  <div class="sub"><Time at={c.at} seconds /></div>
                </li>
              ))}
            </ol>
          )
        }
      </Load>
      <More more={changes.more} />
    </Card>
  );
}

export function ModelPage() {
  const { project, model: name } = useRoute().params as { project: string; model: string };
  const [query] = useQuery();
  const changes = { on: about('model', 'model_version', 'alias') };
  const model = useResource<Model>(api(['projects', project, 'models', name]), changes);
  const versions = useList<ModelVersion>(api(['projects', project, 'models', name, 'versions'], { limit: 50 }), changes);
  const monitors = useList<Monitor>(api(['projects', project, 'monitors'], { limit: 100 }));
  const asked = Number(query.version) || model.data?.aliases.champion || model.data?.latest || 0;
  const listed = versions.data?.find((v) => v.number === asked);
  const single = useResource<ModelVersion>(asked && versions.data && !listed ? api(['projects', project, 'models', name, 'versions', asked]) : undefined);
  const version = listed ?? single.data;
  return (
    <>
      <PageHead crumbs={[{ text: 'Models', href: paths.models(project) }]} title={name}>
        {model.data?.description && <p class="lead">{model.data.description}</p>}
      </PageHead>
      <Load of={versions}>
        {(list) => (
          <>
            <div class="split even">
              <Card title="Versions" cls="flush">
                <Versions list={list} at={asked} project={project} />
                <More more={versions.more} />
              </Card>
              <History project={project} name={name} />
            </div>
            {version && <Version key={version.id} project={project} version={version} monitors={monitors.data ?? []} />}
            {single.error && <Empty title={`${name} has no version ${asked}`}>{single.error.message}</Empty>}
          </>
        )}
      </Load>
    </>
  );
}
