import { describe, expect, it } from 'vitest';
import { type Blocked, blockedText, inVain, waits } from '../../src/lib/waits';

const blocked = (more: Partial<Blocked> = {}): Blocked => ({ kind: 'gpus', message: 'needs 8 GPUs', unsatisfiable: false, since: null, ...more });

describe('what a run waits for', () => {
  it('is shown while nothing of it runs', () => {
    expect(waits({ state: 'queued', blocked: blocked() })?.message).toBe('needs 8 GPUs');
    expect(waits({ state: 'running', blocked: blocked() })).toBeUndefined();
    expect(waits({ state: 'queued' })).toBeUndefined();
  });
  it('is shown while it runs when waiting does not help', () => {
    expect(waits({ state: 'running', blocked: blocked({ unsatisfiable: true }) })).toBeDefined();
    expect(inVain(undefined)).toBe(false);
  });
  it('says by a sign and in words that it is in vain', () => {
    expect(blockedText(blocked())).toBe('needs 8 GPUs');
    expect(blockedText(blocked({ unsatisfiable: true }))).toBe('▲ waits in vain: needs 8 GPUs');
  });
});
