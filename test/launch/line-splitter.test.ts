import { describe, expect, it } from 'vitest';

import { LineSplitter } from '../../lib/launch/line-splitter.js';

function split(...chunks: string[]): string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => lines.push(line.toString()));
  for (const chunk of chunks) splitter.write(Buffer.from(chunk));
  splitter.end();
  return lines;
}

describe('LineSplitter', () => {
  it('joins parts of lines and parts chunks of several', () => {
    expect(split('a', 'b\nc', '', '\n\nd\n')).toEqual(['ab\n', 'c\n', '\n', 'd\n']);
  });

  it('gives a last line as it is', () => {
    expect(split('a\nb')).toEqual(['a\n', 'b']);
    expect(split('a\n')).toEqual(['a\n']);
    expect(split()).toEqual([]);
  });

  it('keeps bytes that are not text', () => {
    const lines: Buffer[] = [];
    const splitter = new LineSplitter((line) => lines.push(line));
    splitter.write(Buffer.of(0xc3));
    splitter.write(Buffer.of(0xa9, 0xff, 0x0a));
    expect(lines).toEqual([Buffer.of(0xc3, 0xa9, 0xff, 0x0a)]);
  });

  it('passes an endless line on in parts rather than keep it', () => {
    const chunk = 'x'.repeat(2 ** 19);
    expect(split(chunk, chunk, chunk).map((line) => line.length)).toEqual([2 ** 20, 2 ** 19]);
  });
});
