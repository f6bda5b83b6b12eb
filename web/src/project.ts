// The project that is open. Addresses name it; pages of single objects (/runs/…, /workers) keep the last one.
import { signal } from '@preact/signals';

const KEY = 'tidemill.project';

export const project = signal(sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? '');

export function setProject(name: string) {
  project.value = name;
  sessionStorage.setItem(KEY, name);
  localStorage.setItem(KEY, name);
}
