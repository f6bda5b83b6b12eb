import { useList } from '../api/resource';
import type { Device, Worker } from '../api/types';
import { ago, bytes, number, plural } from '../lib/format';
import { JsonView, isEmpty } from '../ui/json';
import { Card, Empty, Facts, Load, More, PageHead, State, useNow } from '../ui/parts';

/** Workers belong to no project, so no event of one tells of them. */
const EVERY_MS = 5000;

const devicesOf = (w: Worker) => (Array.isArray(w.devices) ? w.devices : []) as unknown as Device[];

const Gpu = ({ device }: { device: Device }) => (
  <li class={device.health ? 'gpu sick' : 'gpu'} title={device.uuid}>
    <span class="gpu-cell" aria-hidden="true" />
    <span>
      {device.model}
      {device.mig && ` · ${device.mig}`} <span class="dim">{bytes(device.memory)}{device.numa !== undefined && ` · node ${device.numa}`}</span>
      {device.health && <span class="s-failed"> {device.health}</span>}
    </span>
  </li>
);

function One({ worker, now }: { worker: Worker; now: number }) {
  const devices = devicesOf(worker);
  const warnings = Array.isArray(worker.warnings) ? worker.warnings : [];
  return (
    <Card
      cls={worker.online ? 'worker' : 'worker off'}
      title={
        <>
          {worker.name} <State of={worker.online ? 'online' : 'offline'} />
          {worker.state !== 'active' && <State of={worker.state} />}
        </>
      }
      after={<span class="note">{worker.running > 0 ? `${plural(worker.running, 'attempt')} running` : 'idle'}</span>}
    >
      <Facts
        list={[
          { name: 'Pool', value: worker.pool },
          { name: 'CPU', value: plural(Math.round(worker.cpus * 10) / 10, 'core') },
          { name: 'Memory', value: bytes(worker.memory) },
          { name: 'Disk free', value: bytes(worker.disk_free) },
          { name: 'Runtimes', value: worker.runtimes.join(', ') || '–' },
          { name: 'Release', value: worker.release },
          { name: 'Heard of', value: ago(worker.seen_at, now) },
        ]}
      />
      {devices.length > 0 ? (
        <ul class="gpus" aria-label="GPUs">
          {devices.map((d) => (
            <Gpu key={d.uuid} device={d} />
          ))}
        </ul>
      ) : (
        <p class="dim">No GPU.</p>
      )}
      {!isEmpty(worker.labels) && <JsonView value={worker.labels} />}
      {warnings.length > 0 && (
        <ul class="warnings">
          {warnings.map((w) => (
            <li>▲ {String(w)}</li>
          ))}
        </ul>
      )}
    </Card>
  );
}

export function Workers() {
  const workers = useList<Worker>('/api/v1/workers?limit=100', { every: EVERY_MS });
  const now = useNow(true);
  const list = workers.data ?? [];
  const gpus = list.reduce((n, w) => n + devicesOf(w).length, 0);
  return (
    <>
      <PageHead
        title="Workers"
        after={
          workers.data && (
            <span class="note">
              {plural(list.filter((w) => w.online).length, 'worker')} online, {plural(gpus, 'GPU')}, {number(list.reduce((n, w) => n + w.running, 0))} running
            </span>
          )
        }
      />
      <Load of={workers}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No worker has joined yet" command="tidemill worker join-token">
              Runs wait in the queue until one does. A join token enrols one worker; start <code>tidemill-worker</code> with it on the host.
            </Empty>
          ) : (
            <div class="workers">
              {items.map((w) => (
                <One key={w.id} worker={w} now={now} />
              ))}
              <More more={workers.more} />
            </div>
          )
        }
      </Load>
    </>
  );
}
