// The frame around every page: navigation, project switcher, settings, keyboard map.
import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useState } from 'preact/hooks';
import { logout, self } from '../api/client';
import { live } from '../api/events';
import { useList } from '../api/resource';
import type { Project } from '../api/types';
import { type Zone, setZone, zone, zoneName } from '../lib/format';
import { boundKeys, keysOn, setKeys, useKeys } from '../lib/keys';
import { THEMES, type Theme, setTheme, theme } from '../lib/theme';
import { paths } from '../lib/url';
import { project } from '../project';
import { Dialog } from './dialog';
import { Icon, type IconName, Logo } from './icons';

interface Place {
  id: string;
  title: string;
  icon: IconName;
  key: string;
  href: (project: string) => string;
}

const PLACES: Place[] = [
  { id: 'runs', title: 'Runs', icon: 'runs', key: 'g r', href: paths.runs },
  { id: 'models', title: 'Models', icon: 'models', key: 'g m', href: paths.models },
  { id: 'monitors', title: 'Monitors', icon: 'monitors', key: 'g o', href: paths.monitors },
  { id: 'datasets', title: 'Data sets', icon: 'datasets', key: 'g d', href: paths.datasets },
  { id: 'workers', title: 'Workers', icon: 'workers', key: 'g w', href: () => '/workers' },
];

const LIVE_WORDS = { on: 'Live', connecting: 'Connecting…', off: 'Not live' };

function placeOf(path: string): string {
  if (path.startsWith('/runs/')) return 'runs';
  if (path.includes('/decisions/')) return 'monitors';
  if (path.startsWith('/workers')) return 'workers';
  return path.split('/')[3] ?? 'runs';
}

/** Changing the project keeps the kind of page. */
function Switcher({ at }: { at: string }) {
  const { route } = useLocation();
  const projects = useList<Project>('/api/v1/projects?limit=500');
  const names = (projects.data ?? []).map((p) => p.name);
  if (project.value && !names.includes(project.value)) names.unshift(project.value);
  const place = PLACES.find((p) => p.id === at && p.id !== 'workers') ?? (PLACES[0] as Place);
  return (
    <label class="switcher">
      <span class="switcher-label">Project</span>
      <select value={project.value} onChange={(e) => route(place.href(e.currentTarget.value))}>
        {names.map((n) => (
          <option value={n} selected={n === project.value}>{n}</option>
        ))}
      </select>
    </label>
  );
}

function Choice<T extends string>(p: { legend: string; options: readonly T[]; value: T; names?: Partial<Record<T, string>>; set: (v: T) => void }) {
  return (
    <fieldset class="choice">
      <legend>{p.legend}</legend>
      {p.options.map((o) => (
        <label>
          <input type="radio" name={p.legend} checked={p.value === o} onChange={() => p.set(o)} />
          {p.names?.[o] ?? o}
        </label>
      ))}
    </fieldset>
  );
}

function Settings({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Settings" onClose={onClose}>
      <Choice<Theme> legend="Colours" options={THEMES} value={theme.value} set={setTheme} names={{ system: 'as the system', light: 'light', dark: 'dark' }} />
      <Choice<Zone> legend="Times" options={['local', 'utc']} value={zone.value} set={setZone} names={{ local: `local (${zoneName('local')})`, utc: 'UTC' }} />
      <fieldset class="choice">
        <legend>Keyboard</legend>
        <label>
          <input type="checkbox" checked={keysOn.value} onChange={(e) => setKeys(e.currentTarget.checked)} />
          single keys are shortcuts
        </label>
      </fieldset>
      <div class="dialog-actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

const Help = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys on this page" onClose={onClose}>
    <table class="data keys">
      <tbody>
        {boundKeys().map((b) => (
          <tr>
            <td>
              {b.keys.split(' ').map((k) => (
                <kbd>{k}</kbd>
              ))}
            </td>
            <td>{b.does}</td>
          </tr>
        ))}
        <tr>
          <td><kbd>Esc</kbd></td>
          <td>close what is open</td>
        </tr>
      </tbody>
    </table>
    <div class="dialog-actions">
      <button type="button" onClick={onClose}>
        Close
      </button>
    </div>
  </Dialog>
);

/** Steps through links of the page's first list, from wherever the focus is. */
function step(by: number) {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const i = rows.indexOf(document.activeElement as HTMLElement);
  const next = i < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, i + by));
  rows[next]?.focus();
}

export function Shell({ children }: { children: ComponentChildren }) {
  const { path, route } = useLocation();
  const [open, setOpen] = useState<'settings' | 'help'>();
  const at = placeOf(path);
  useKeys([
    ...PLACES.map((p) => ({ keys: p.key, does: `go to ${p.title.toLowerCase()}`, run: () => route(p.href(project.value)) })),
    { keys: 'j', does: 'next row', run: () => step(1) },
    { keys: 'k', does: 'row before', run: () => step(-1) },
    { keys: '/', does: 'go to the filter', run: () => document.querySelector<HTMLElement>('[data-filter]')?.focus() },
    { keys: '?', does: 'this list', run: () => setOpen('help') },
  ]);
  return (
    <div class="shell">
      <a class="skip" href="#main">Skip to the content</a>
      <aside class="side">
        <a class="brand" href="/">
          <Logo />
          Tidemill
        </a>
        <Switcher at={at} />
        <nav aria-label="Main">
          {PLACES.map((p) => (
            <a href={p.href(project.value)} aria-current={p.id === at ? 'page' : undefined}>
              <Icon name={p.icon} />
              {p.title}
            </a>
          ))}
        </nav>
        <div class="side-foot">
          <p class={`live ${live.value}`} role="status">
            <span class="dot" aria-hidden="true" />
            {LIVE_WORDS[live.value]}
          </p>
          <button type="button" class="ghost" onClick={() => setOpen('settings')}>
            <Icon name="gear" /> Settings
          </button>
          <div class="who">
            <span title={self.value?.kind}>{self.value?.name}</span>
            <button type="button" class="ghost small" onClick={() => void logout()}>
              Log out
            </button>
          </div>
        </div>
      </aside>
      <main id="main">{children}</main>
      {open === 'settings' && <Settings onClose={() => setOpen(undefined)} />}
      {open === 'help' && <Help onClose={() => setOpen(undefined)} />}
    </div>
  );
}
