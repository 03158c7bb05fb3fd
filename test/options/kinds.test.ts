// What the kinds of options take from a command line, and from a program.
import { describe, expect, it } from 'vitest';

import { deviceList } from '../../lib/cli/measure/measure-options.js';
import { imageShape } from '../../lib/cli/network-rows.js';
import {
  above,
  byteCount,
  choice,
  list,
  ordinals,
  sizeInBytes,
  text,
  whole,
} from '../../lib/options/kinds.js';

describe('whole numbers', () => {
  it.each([
    ['0', 0],
    ['12', 12],
    ['-1', -1],
    ['+7', 7],
  ])('reads %s', (text, value) => {
    expect(whole().parse(text)).toBe(value);
  });

  it.each(['', ' ', '1.5', '1e3', '0x10', 'one', '9007199254740993', '1 '])(
    'refuses %j',
    (text) => {
      expect(() => whole().parse(text)).toThrow('whole number.');
    },
  );

  it('names its range', () => {
    expect(() => whole({ min: 1 }).parse('0')).toThrow('least 1');
    expect(() => whole({ max: 3 }).parse('4')).toThrow('most 3');
    expect(() => whole({ min: 0, max: 3 }).parse('4')).toThrow('from 0 to 3');
  });
});

describe('sizes', () => {
  it.each([
    ['0', 0],
    ['8', 8],
    ['64K', 65536],
    ['64k', 65536],
    ['1.5M', 1572864],
    ['128M', 134217728],
    ['1G', 1073741824],
    ['2GiB', 2147483648],
    ['16B', 16],
  ])('reads %s with binary units', (text, value) => {
    expect(byteCount.parse(text)).toBe(value);
  });

  it.each(['', 'M', '-8', '1X', '0.3', '1,5M', '1e6'])('refuses %j', (text) => {
    expect(() => byteCount.parse(text)).toThrow('such as 8, 64K, 128M or 1G');
  });

  it.each(['0', '0K'])('of a size are at least one, not %j', (text) => {
    expect(byteCount.parse(text)).toBe(0);
    expect(() => sizeInBytes.parse(text)).toThrow('at least 1 byte');
    expect(sizeInBytes.parse('1')).toBe(1);
  });
});

describe('other values', () => {
  it('takes decimal numbers above a bound', () => {
    expect(above(0).parse('0.25')).toBe(0.25);
    for (const text of ['0', '-1', 'x', '', 'Infinity']) {
      expect(() => above(0).parse(text)).toThrow('greater than 0');
    }
  });

  it('takes one of a list, by its name or another', () => {
    const kind = choice(['float32', 'float64'], { float: 'float32' });
    expect([kind.parse('float64'), kind.parse('float')]).toEqual(['float64', 'float32']);
    expect(() => kind.parse('toString')).toThrow('one of: float32, float64');
  });

  it('takes lists without gaps and repeats', () => {
    const kind = list(text());
    expect(kind.parse('a, b')).toEqual(['a', 'b']);
    expect(() => kind.parse('a,,b')).toThrow('empty');
    expect(() => kind.parse('a,b,a')).toThrow('a is repeated');
  });

  it('takes image shapes', () => {
    expect(imageShape.parse('3,224,199')).toEqual([3, 224, 199]);
    for (const text of ['3,224', '3,224,0', '3,224,224,1', '3;224;224', '3,a,224', '']) {
      expect(() => imageShape.parse(text)).toThrow('3,224,224');
    }
  });

  it('takes devices of one kind, GPUs several times', () => {
    expect(deviceList.parse('cpu,cpu:3')).toEqual({ names: ['cpu:0', 'cpu:3'], gpus: null });
    expect(deviceList.parse('gpu:0,gpu, gpu:1').gpus).toEqual([0, 0, 1]);
    expect(() => deviceList.parse('cpu:1,cpu:1')).toThrow('cpu:1 twice');
    expect(() => deviceList.parse('cpu:0,gpu:0')).toThrow('GPUs only');
    for (const text of ['tpu', 'gpu:-1', 'gpu:0:1', 'gpus']) {
      expect(() => deviceList.parse(text)).toThrow("'gpu:'");
    }
  });

  it('takes ordinals of GPUs, each as often as it is named', () => {
    expect(ordinals.parse('0,0, 2')).toEqual([0, 0, 2]);
    for (const text of ['', '0,', '1.5', '-1', '2000', 'a']) {
      expect(() => ordinals.parse(text)).toThrow('Expected');
    }
  });
});

describe('values of programs', () => {
  it.each([
    [whole({ min: 1, max: 3 }), 2, 0, 'ERR_OUT_OF_RANGE'],
    [whole(), 7, 1.5, 'ERR_OUT_OF_RANGE'],
    [whole(), 7, '7', 'ERR_INVALID_ARG_TYPE'],
    [above(0), 0.5, Infinity, 'ERR_OUT_OF_RANGE'],
    [choice(['one', 'other']), 'other', 'Other', 'ERR_INVALID_ARG_VALUE'],
    [text(), 'a', '', 'ERR_INVALID_ARG_VALUE'],
    [list(whole()), [1, 1], [1, 'b'], 'ERR_INVALID_ARG_TYPE'],
    [list(whole()), [], 1, 'ERR_INVALID_ARG_TYPE'],
  ])('%#: one is right, one is refused', (kind, right, wrong, code) => {
    expect(() => {
      kind.check(right, 'it');
    }).not.toThrow();
    expect(() => {
      kind.check(wrong, 'it');
    }).toThrow(expect.objectContaining({ code }));
  });
});
