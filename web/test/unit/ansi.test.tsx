import { render } from 'preact';
import { expect, test } from 'vitest';
import { tokens } from '../../src/lib/ansi';
import { LineText } from '../../src/pages/run_log';

const ESC = '\u001b';

test('plain text is one token without classes', () => {
  expect(tokens('epoch 1, loss 0.3')).toEqual([{ text: 'epoch 1, loss 0.3', cls: '' }]);
  expect(tokens('')).toEqual([]);
});

test('colours and decorations become classes', () => {
  expect(tokens(`a ${ESC}[1;31mred${ESC}[0m b`)).toEqual([
    { text: 'a ', cls: '' },
    { text: 'red', cls: 'fg-red ansi-bold' },
    { text: ' b', cls: '' },
  ]);
  expect(tokens(`${ESC}[92mok`)).toEqual([{ text: 'ok', cls: 'fg-bright-green' }]);
  expect(tokens(`${ESC}[41mx`)).toEqual([{ text: 'x', cls: 'bg-red' }]);
});

test('256 and true colours are brought to the sixteen of the theme', () => {
  expect(tokens(`${ESC}[38;5;196mx`)[0]?.cls).toBe('fg-red');
  expect(tokens(`${ESC}[38;5;21mx`)[0]?.cls).toBe('fg-blue');
  expect(tokens(`${ESC}[38;5;9mx`)[0]?.cls).toBe('fg-bright-red');
  expect(tokens(`${ESC}[38;5;240mx`)[0]?.cls).toBe('fg-bright-black');
  expect(tokens(`${ESC}[38;2;20;200;30mx`)[0]?.cls).toBe('fg-green');
  expect(tokens(`${ESC}[48;2;250;250;250mx`)[0]?.cls).toBe('bg-white');
});

test('whatever is no colour is dropped', () => {
  expect(tokens(`${ESC}[2K${ESC}[1Gdone`)).toEqual([{ text: 'done', cls: '' }]);
  expect(tokens(`${ESC}]0;title\u0007done`)).toEqual([{ text: 'done', cls: '' }]);
  expect(tokens(`${ESC}]8;;javascript:alert(1)${ESC}\\link${ESC}]8;;${ESC}\\`)).toEqual([{ text: 'link', cls: '' }]);
  expect(tokens('a\u0000b\u0008c\u007f')).toEqual([{ text: 'abc', cls: '' }]);
  expect(tokens(`cut ${ESC}[3`).map((t) => t.text).join('')).not.toContain(ESC);
});

test('markup in a log stays text', () => {
  const box = document.createElement('div');
  render(<LineText text={`<img src=x onerror=alert(1)> ${ESC}[31m<b>red</b>`} />, box);
  expect(box.querySelector('img, b')).toBeNull();
  expect(box.querySelector('.fg-red')?.textContent).toBe('<b>red</b>');
  expect(box.textContent).toBe('<img src=x onerror=alert(1)> <b>red</b>');
});

test('a very long line is cut, and says by how much', () => {
  const box = document.createElement('div');
  render(<LineText text={'x'.repeat(5000)} />, box);
  expect(box.textContent).toMatch(/^x{4000} … 1\u202f000 characters more/);
});
