import { describe, expect, test } from 'vitest';
import { SseParser } from '../../src/api/sse';

const TEXT = ': hello\nretry: 3000\nid: 7\nevent: run.succeeded\ndata: {"a":1,\ndata: "b":2}\n\ndata: plain\n\nevent: empty\n\n';
const EXPECTED = [
  { id: '7', event: 'run.succeeded', data: '{"a":1,\n"b":2}' },
  { id: '7', event: 'message', data: 'plain' },
];

describe('the stream of events', () => {
  test('fields, several lines of data, comments, an event without data', () => {
    const p = new SseParser();
    expect(p.push(TEXT)).toEqual(EXPECTED);
    expect(p.retry).toBe(3000);
  });
  test('cut anywhere, it reads the same', () => {
    for (let cut = 0; cut <= TEXT.length; cut++) {
      const p = new SseParser();
      expect([...p.push(TEXT.slice(0, cut)), ...p.push(TEXT.slice(cut))]).toEqual(EXPECTED);
    }
  });
  test('CR LF and CR end lines too, also when cut between the two', () => {
    for (const eol of ['\r\n', '\r']) {
      const text = `${TEXT.replace(/\n/g, eol)}data: last${eol}${eol}:${eol}`;
      for (let cut = 0; cut <= text.length; cut++) {
        const p = new SseParser();
        const got = [...p.push(text.slice(0, cut)), ...p.push(text.slice(cut))];
        expect(got).toEqual([...EXPECTED, { id: '7', event: 'message', data: 'last' }]);
      }
    }
  });
});
