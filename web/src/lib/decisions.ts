// What decisions that did nothing say together.
import type { Decision } from '../api/types';
import { isObject } from '../ui/json';
import { plural } from './format';

const verdictOf = (d: Decision) => (isObject(d.inputs) ? d.inputs.verdict : undefined);

/** A window with too few rows, or without what it is judged by, has not been found well. */
export function nothingDone(list: Decision[]): string {
  const few = list.filter((d) => verdictOf(d) === 'insufficient').length;
  const untested = list.filter((d) => verdictOf(d) === 'untested').length;
  const well = list.length - few - untested;
  const parts = [
    well > 0 && `${plural(well, 'decision')} only recorded that all was well`,
    few > 0 && `${plural(few, 'decision')} found too few rows to judge`,
    untested > 0 && `${plural(untested, 'decision')} had nothing to judge by`,
  ].filter(Boolean);
  return `Nothing was done so far: ${parts.join(', ')}.`;
}
