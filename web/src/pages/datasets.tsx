import { useRoute } from 'preact-iso';
import { about, useList, useResource } from '../api/resource';
import type { Dataset, DatasetVersion, FileEntry } from '../api/types';
import { bytes, count, plural, shortHash } from '../lib/format';
import { api, below, paths } from '../lib/url';
import { Icon } from '../ui/icons';
import { Card, Copy, Empty, Facts, Load, More, PageHead, Time, ZoneNote, useQuery } from '../ui/parts';

export function Datasets() {
  const project = useRoute().params.project as string;
  const datasets = useList<Dataset>(api(['projects', project, 'datasets'], { limit: 100 }), { on: about('dataset', 'dataset_version') });
  return (
    <>
      <PageHead title="Data sets" />
      <Load of={datasets}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={`${project} has no data sets yet`} command="tidemill dataset push NAME FILE…">
              A data set is a named collection of files; each version is immutable, and runs pin the version that they read.
            </Empty>
          ) : (
            <div class="table-wrap card flush">
              <table class="data">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Description</th>
                    <th scope="col" class="num">Newest version</th>
                    <th scope="col">Made <ZoneNote /></th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((d) => (
                    <tr key={d.id}>
                      <td><a class="strong" data-row href={paths.dataset(project, d.name)}>{d.name}</a></td>
                      <td class="text">{d.description}</td>
                      <td class="num">{d.latest || <span class="dim">none</span>}</td>
                      <td class="nowrap"><Time at={d.created_at} /></td>
                    </tr>
                  ))}
                </tbody>
              </table>
              <More more={datasets.more} />
            </div>
          )
        }
      </Load>
    </>
  );
}

function Files({ project, name, version }: { project: string; name: string; version: DatasetVersion }) {
  const base = api(['projects', project, 'datasets', name, 'versions', version.number, 'files']);
  const files = useList<FileEntry>(`${base}?limit=100`);
  return (
    <Card title={`Version ${version.number}`} after={<span class="note">{plural(version.files, 'file')}, {bytes(version.bytes)}</span>}>
      {version.description && <p>{version.description}</p>}
      <Facts
        list={[
          { name: 'Manifest', value: <span class="mono">{shortHash(version.digest)} <Copy text={version.digest} what="the digest" /></span> },
          { name: 'Made', value: <Time at={version.created_at} seconds /> },
          !!version.run_id && { name: 'Made by', value: <a href={paths.run(version.run_id ?? '')}>a run</a> },
        ]}
      />
      <Load of={files}>
        {(list) => (
          <div class="table-wrap">
            <table class="data compact">
              <thead>
                <tr>
                  <th scope="col">File</th>
                  <th scope="col" class="num">Size</th>
                  <th scope="col">SHA-256</th>
                </tr>
              </thead>
              <tbody>
                {list.map((f) => (
                  <tr key={f.path}>
                    <td><a href={below(base, f.path)} download={f.path.slice(f.path.lastIndexOf('/') + 1)}><Icon name="file" /> {f.path}</a></td>
                    <td class="num nowrap">{bytes(f.size)}</td>
                    <td class="mono dim" title={f.digest}>{f.digest.slice(0, 16)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            <More more={files.more} />
          </div>
        )}
      </Load>
    </Card>
  );
}

function Versions({ list, at, project, name }: { list: DatasetVersion[]; at: number; project: string; name: string }) {
  return (
    <div class="table-wrap">
      <table class="data">
        <thead>
          <tr>
            <th scope="col" class="num">Version</th>
            <th scope="col">What is new</th>
            <th scope="col" class="num">Files</th>
            <th scope="col" class="num">Size</th>
            <th scope="col">Made <ZoneNote /></th>
          </tr>
        </thead>
        <tbody>
          {list.map((v, i) => {
            const before = list[i + 1];
            const added = before && v.parent_id === before.id ? v.bytes - before.bytes : 0;
            return (
              <tr key={v.id} aria-selected={v.number === at}>
                <td class="num"><a class="strong" data-row href={paths.dataset(project, name, v.number)}>{v.number}</a></td>
                <td class="text">{v.description || <span class="dim">–</span>}</td>
                <td class="num">{count(v.files)}</td>
                <td class="num nowrap">{bytes(v.bytes)}{added > 0 && <span class="sub inline">+{bytes(added)}</span>}</td>
                <td class="nowrap"><Time at={v.created_at} /></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function DatasetPage() {
  const { project, dataset: name } = useRoute().params as { project: string; dataset: string };
  const [query] = useQuery();
  const dataset = useResource<Dataset>(api(['projects', project, 'datasets', name]), { on: about('dataset', 'dataset_version') });
  const versions = useList<DatasetVersion>(api(['projects', project, 'datasets', name, 'versions'], { limit: 50 }), { on: about('dataset', 'dataset_version') });
  const asked = Number(query.version) || dataset.data?.latest || 0;
  const listed = versions.data?.find((v) => v.number === asked);
  const single = useResource<DatasetVersion>(asked && versions.data && !listed ? api(['projects', project, 'datasets', name, 'versions', asked]) : undefined);
  const version = listed ?? single.data;
  return (
    <>
      <PageHead crumbs={[{ text: 'Data sets', href: paths.datasets(project) }]} title={name}>
        {dataset.data?.description && <p class="lead">{dataset.data.description}</p>}
      </PageHead>
      <Load of={versions}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={`${name} has no versions yet`} command={`tidemill dataset push ${name} FILE…`}>
              A version is made of uploaded files; pipelines that wait for this data set start by themselves.
            </Empty>
          ) : (
            <div class="split">
              <Card title="Versions" cls="flush" after={<span class="note">newest first</span>}>
                <Versions list={list} at={asked} project={project} name={name} />
                <More more={versions.more} />
              </Card>
              {version && <Files key={version.id} project={project} name={name} version={version} />}
            </div>
          )
        }
      </Load>
    </>
  );
}
