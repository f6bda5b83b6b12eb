// Writes src/api/schema.ts: the messages of api/openapi.json as TypeScript. It runs before each build and test, so the
// types cannot be older than the contract.
import { readFileSync, writeFileSync } from 'node:fs';

/** Operation whose reply it is (of a list: an item of it) → name of the type. */
const TYPES = {
  'auth.self': 'Self',
  'sessions.create': 'Session',
  'projects.get': 'Project',
  'datasets.get': 'Dataset',
  'dataset_versions.get': 'DatasetVersion',
  'dataset_versions.files': 'FileEntry',
  'pipelines.get': 'Pipeline',
  'runs.get': 'Run',
  'steps.get': 'Step',
  'steps.blockers': 'StepWait',
  'attempts.list': 'Attempt',
  'tracking.get': 'TrackingRun',
  'tracking.series': 'Series',
  'tracking.artifacts': 'Artifact',
  'models.get': 'Model',
  'model_versions.get': 'ModelVersion',
  'aliases.history': 'AliasChange',
  'monitors.get': 'Monitor',
  'windows.list': 'Window',
  'windows.metrics': 'DriftValue',
  'decisions.get': 'Decision',
  'workers.get': 'Worker',
};
const SCALARS = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' };

const document = JSON.parse(readFileSync(new URL('../../api/openapi.json', import.meta.url), 'utf8'));
const operations = Object.values(document.paths).flatMap((path) => Object.values(path));

function typeOf(schema, indent) {
  if (schema.anyOf) return schema.anyOf.map((s) => typeOf(s, indent)).join(' | ');
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(' | ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(' | ');
  if (schema.type === 'array') return `${group(typeOf(schema.items, indent))}[]`;
  if (schema.type === 'object') return schema.properties ? members(schema, indent) : `Record<string, ${typeOf(schema.additionalProperties ?? {}, indent)}>`;
  return SCALARS[schema.type] ?? 'Json';
}

const group = (type) => (type.includes(' | ') ? `(${type})` : type);

function members(schema, indent) {
  const inner = `${indent}  `;
  const lines = Object.entries(schema.properties).map(([name, s]) => {
    const always = schema.required?.includes(name) ? '' : '?';
    const doc = s.description ? `${inner}/** ${s.description.replace(/\*\//g, '* /')} */\n` : '';
    return `${doc}${inner}${name}${always}: ${typeOf(s, inner)};\n`;
  });
  return `{\n${lines.join('')}${indent}}`;
}

function replyOf(id) {
  const operation = operations.find((o) => o.operationId === id);
  if (!operation) throw new Error(`api/openapi.json has no operation ${id}`);
  const ok = Object.keys(operation.responses).find((status) => status.startsWith('2'));
  const schema = operation.responses[ok].content['application/json'].schema;
  return schema.properties?.items?.items ?? schema;
}

const head = "// Made from api/openapi.json by tools/types.mjs.\nimport type { Json } from './types';\n";
const body = Object.entries(TYPES).map(([id, name]) => `\nexport interface ${name} ${members(replyOf(id), '')}\n`);
writeFileSync(new URL('../src/api/schema.ts', import.meta.url), head + body.join(''));
