// Typed arrays of the same bytes are equal at once: element by element, as vitest compares them, a megabyte takes seconds.
import { expect } from 'vitest';

const bytesOf = (one: unknown) =>
  ArrayBuffer.isView(one) && !(one instanceof DataView)
    ? Buffer.from(one.buffer, one.byteOffset, one.byteLength)
    : undefined;

expect.addEqualityTesters([
  (a, b) => {
    const [left, right] = [bytesOf(a), bytesOf(b)];
    if (left === undefined || right === undefined) return undefined;
    const same = Object.getPrototypeOf(a) === Object.getPrototypeOf(b) && left.equals(right);
    // Other bytes may be equal all the same, or differ in a way that vitest shows.
    return same ? true : undefined;
  },
]);
