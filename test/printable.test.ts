// Texts of others: what a terminal would act on is shown, and everything else stays.
import { describe, expect, it } from 'vitest';

import { argumentError, GradlinkError } from '../lib/errors.js';
import { printable, printableLines, printableTree } from '../lib/printable.js';

const tooDeep = (): Error => new Error('deep');

describe('a printable text', () => {
  it.each([
    ['\u001b]0;a\u0007', '\\u001b]0;a\\u0007'],
    // The one byte that begins what ESC [ begins, and what turns the direction of reading.
    ['\u009b2J\u007f', '\\u009b2J\\u007f'],
    ['a\u202eb\u2066', 'a\\u202eb\\u2066'],
    ['\u2028\r\n\t', '\\u2028\\r\\n\\t'],
    // No characters of XML.
    ['\ud800x\udfff\ufffe\uffff', '\\ud800x\\udfff\\ufffe\\uffff'],
  ])('of %j is %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  it.each(['', 'größe 値 \u{1f600}', "a\\u001b `<b>' | é", '\ufffd'])('stays %j', (text) => {
    expect(printable(text)).toBe(text);
  });

  it('of several lines keeps these', () => {
    expect(printableLines('a\n\tb\r\u001b')).toBe('a\n\tb\\r\\u001b');
  });
});

describe('a printable tree', () => {
  it('has each text and each name of a member so', () => {
    const tree = JSON.parse('{"a\\u001b": ["\\u0007", 1, null], "__proto__": {"b": "\\u009b"}}');
    const shown = '{"a\\\\u001b":["\\\\u0007",1,null],"__proto__":{"b":"\\\\u009b"}}';
    expect(JSON.stringify(printableTree(tree, tooDeep))).toBe(shown);
  });

  it('is refused where it has no end', () => {
    const endless: unknown[] = [];
    endless.push(endless);
    for (const deep of [endless, JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))]) {
      expect(() => printableTree(deep, tooDeep)).toThrow('deep');
    }
  });
});

it('errors of the package name what came from a file so, also where nobody but Node prints them', () => {
  const name = 'x\u001b[2J';
  expect(new GradlinkError('ERR_MISMATCH', name).message).toBe('x\\u001b[2J');
  for (const got of [name, { text: name }]) {
    const { message } = argumentError('ERR_INVALID_ARG_VALUE', name, 'a name', got);
    expect(message.match(/x\\u001b\[2J/g)).toHaveLength(2);
    expect(message).not.toContain('\u001b');
  }
});
