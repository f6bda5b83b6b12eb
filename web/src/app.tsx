// The shell: who is logged in, which project, the pages by their addresses.
import { ErrorBoundary, LocationProvider, Route, Router, lazy, useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { type ApiError, recall, self } from './api/client';
import { watchProject } from './api/events';
import { asError, useList } from './api/resource';
import type { Project } from './api/types';
import { paths } from './lib/url';
import { Login } from './pages/login';
import { Runs } from './pages/runs';
import { project, setProject } from './project';
import { Empty, ErrorBox } from './ui/parts';
import { Shell } from './ui/shell';

// Beyond the first page, pages come when they are asked for.
const RunPage = lazy(() => import('./pages/run').then((m) => m.RunPage));
const Datasets = lazy(() => import('./pages/datasets').then((m) => m.Datasets));
const DatasetPage = lazy(() => import('./pages/datasets').then((m) => m.DatasetPage));
const Models = lazy(() => import('./pages/models').then((m) => m.Models));
const ModelPage = lazy(() => import('./pages/models').then((m) => m.ModelPage));
const Monitors = lazy(() => import('./pages/monitors').then((m) => m.Monitors));
const MonitorPage = lazy(() => import('./pages/monitor').then((m) => m.MonitorPage));
const DecisionPage = lazy(() => import('./pages/decision').then((m) => m.DecisionPage));
const Workers = lazy(() => import('./pages/workers').then((m) => m.Workers));

/** "/" leads to the runs of the project that was open last, or of the first one. */
function Start() {
  const { route } = useLocation();
  const projects = useList<Project>('/api/v1/projects');
  const first = projects.data?.find((p) => p.name === project.value) ?? projects.data?.[0];
  useEffect(() => {
    if (first) route(paths.runs(first.name), true);
  }, [first?.name]);
  if (projects.error) return <ErrorBox error={projects.error} retry={projects.reload} />;
  if (projects.data?.length === 0)
    return (
      <Empty title="There is no project that you may see" command="tidemill project create NAME">
        Everything belongs to a project. An administrator makes one, or makes you a member.
      </Empty>
    );
  return null;
}

const NotFound = () => (
  <Empty title="There is no page at this address">
    It may have been removed, or the address was cut short. <a href="/">Go to the runs</a>.
  </Empty>
);

function Pages() {
  const { path } = useLocation();
  const named = /^\/projects\/([^/]+)/.exec(path)?.[1];
  useEffect(() => {
    if (named) setProject(decodeURIComponent(named));
  }, [named]);
  useEffect(() => watchProject(project.value), [project.value]);
  return (
    <Shell>
      <ErrorBoundary>
        <Router onRouteChange={() => document.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true })}>
          <Route path="/" component={Start} />
          <Route path="/projects/:project" component={Runs} />
          <Route path="/projects/:project/runs" component={Runs} />
          <Route path="/runs/:run" component={RunPage} />
          <Route path="/projects/:project/datasets" component={Datasets} />
          <Route path="/projects/:project/datasets/:dataset" component={DatasetPage} />
          <Route path="/projects/:project/models" component={Models} />
          <Route path="/projects/:project/models/:model" component={ModelPage} />
          <Route path="/projects/:project/monitors" component={Monitors} />
          <Route path="/projects/:project/monitors/:monitor" component={MonitorPage} />
          <Route path="/projects/:project/decisions/:decision" component={DecisionPage} />
          <Route path="/decisions/:decision" component={DecisionPage} />
          <Route path="/workers" component={Workers} />
          <Route default component={NotFound} />
        </Router>
      </ErrorBoundary>
    </Shell>
  );
}

function Gate() {
  const [error, setError] = useState<ApiError>();
  const ask = () => {
    setError(undefined);
    recall().catch((e: unknown) => setError(asError(e)));
  };
  useEffect(ask, []);
  if (error) return <div class="alone"><ErrorBox error={error} retry={ask} /></div>;
  if (self.value === undefined) return null;
  return self.value === null ? <Login /> : <Pages />;
}

export const App = () => (
  <LocationProvider>
    <Gate />
  </LocationProvider>
);
