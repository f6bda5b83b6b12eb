// Light, dark or as the system says; `?theme=` in an address overrides the setting for this visit.
import { signal } from '@preact/signals';

const KEY = 'tidemill.theme';
export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const known = (t: string | null): t is Theme => THEMES.includes(t as Theme);
const asked = new URLSearchParams(location.search).get('theme');
const kept = localStorage.getItem(KEY);

export const theme = signal<Theme>(known(asked) ? asked : known(kept) ? kept : 'system');
/** Moves whenever colours may have changed: charts draw on a canvas and must be told. */
export const palette = signal(0);

function apply() {
  if (theme.value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
  palette.value++;
}

export function setTheme(t: Theme) {
  theme.value = t;
  localStorage.setItem(KEY, t);
  apply();
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => palette.value++);
apply();
