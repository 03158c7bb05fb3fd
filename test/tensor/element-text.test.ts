import { describe, expect, it } from 'vitest';

import { elementText } from '../../lib/tensor/element-text.js';

describe('an element as text', () => {
  it.each([
    ['int8', 0xffn, '-1'],
    ['uint8', 0xffn, '255'],
    ['int16', 0x8000n, '-32768'],
    ['int64', 0xffffffffffffffffn, '-1'],
    ['uint64', 0xfffffffffffffffen, '18446744073709551614'],
    ['float16', 0x3c01n, '1.0009765625'],
    ['bfloat16', 0xc0a0n, '-5'],
    ['float32', 0x40600000n, '3.5'],
    ['float32', 0x80000000n, '-0'],
    ['float32', 0x7fc00001n, 'NaN'],
    ['float64', 0x7ff0000000000000n, 'Infinity'],
    ['float8e4m3', 0x38n, '1'],
    ['float8e5m2', 0x3cn, '1'],
  ] as const)('of type %s with the bits %s is %s', (dtype, bits, text) => {
    expect(elementText(dtype, bits)).toBe(text);
  });
});
