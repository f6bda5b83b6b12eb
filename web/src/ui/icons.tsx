// Signs of our own, drawn with the text's colour.
const PATHS = {
  runs: 'M5 4.5v11l9-5.5z',
  datasets: 'M4 5.5c0-1.4 2.7-2.5 6-2.5s6 1.1 6 2.5v9c0 1.4-2.7 2.5-6 2.5s-6-1.1-6-2.5zM4 5.5C4 6.9 6.7 8 10 8s6-1.1 6-2.500M4 10c0 1.4 2.7 2.5 6 2.500s6-1.1 6-2.5',
  models: 'M10 2.500l6.5 3.750v7.500L10 17.500l-6.5-3.750v-7.500zM3.5 6.250L10 10l6.5-3.750M10 10v7.5',
  monitors: 'M2.5 11h3.200l2-6 3.6 10.5 2.4-7 1.3 2.500h2.5',
  workers: 'M4 4h12v5H4zM4 11.500h12v5H4zM6.5 6.500h.01M6.5 14h.01M9 6.500h4.500M9 14h4.5',
  gear: 'M10 7.300a2.7 2.7 0 100 5.4 2.7 2.7 0 000-5.400zM10 2.500v2.300M10 15.200v2.300M2.5 10h2.300M15.2 10h2.300M4.7 4.700l1.6 1.600M13.7 13.700l1.6 1.600M4.7 15.300l1.6-1.600M13.7 6.300l1.6-1.6',
  folder: 'M2.5 5h5l1.5 2h8.500v8.500h-15z',
  file: 'M5 2.500h6.500L15.5 6.500v11H5zM11.5 2.500v4h4',
  download: 'M10 3v9.500M6 9l4 4 4-4M4 16.500h12',
  down: 'M5.5 8l4.5 4.500L14.5 8',
  right: 'M8 5.500l4.5 4.500L8 14.5',
  copy: 'M7 7h9.500v9.500H7zM4.5 13H3.500V3.500H13v1',
  link: 'M8.5 11.500a3 3 0 004.3 0l3-3a3 3 0 00-4.3-4.300l-1 1M11.5 8.500a3 3 0 00-4.3 0l-3 3a3 3 0 004.3 4.300l1-1',
  commit: 'M10 7a3 3 0 100 6 3 3 0 000-6zM2.5 10H7M13 10h4.5',
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 20 20" width="16" height="16" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
);

export const Logo = () => (
  <svg class="logo" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
    <circle cx="16" cy="12.5" r="5.6" />
    <path class="thin" d="M16 4.500v16M8 12.500h16M10.4 6.900l11.2 11.200M21.6 6.900L10.4 18.1" />
    <path d="M4.5 25c2.3-2.2 4.6-2.2 6.9 0s4.6 2.2 6.9 0 4.6-2.2 9.2 0" />
  </svg>
);
