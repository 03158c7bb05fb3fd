// Lengths that arrays say of themselves. A subclass can say anything, and memory is made by what it says.
import { argumentError } from '../errors.js';

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
const intrinsic = ['length', 'byteLength', 'byteOffset', 'buffer'] as const;

// The last one looked at: small calls are counted in nanoseconds.
let lastPrototype: object | null = null;

/** %TypedArray%.prototype of this realm, or of another: its getter is native code's. */
function isTypedArrayOfSomeRealm(prototype: object): boolean {
  if (prototype === typedArray) return true;
  const own = Object.getOwnPropertyDescriptor(prototype, 'length') as
    { readonly get?: unknown } | undefined;
  return typeof own?.get === 'function' && /\{\s*\[native code\]\s*\}$/.test(String(own.get));
}

function isForged(prototype: object): boolean {
  let one: object | null = prototype;
  while (one !== null && !isTypedArrayOfSomeRealm(one)) {
    const own: object = one;
    if (intrinsic.some((name) => Object.hasOwn(own, name))) return true;
    one = Object.getPrototypeOf(own) as object | null;
  }
  return false;
}

/**
 * @throws TypeError for a TypedArray whose length, or place in its buffer, is a property that somebody else has defined.
 */
export function assertOwnLength(array: ArrayBufferView, name: string): void {
  const prototype = Object.getPrototypeOf(array) as object;
  const known = prototype === lastPrototype;
  if ((known || !isForged(prototype)) && !Object.hasOwn(array, 'length')) {
    lastPrototype = prototype;
    return;
  }
  throw argumentError('ERR_INVALID_ARG_VALUE', name, 'an array with the length of its memory', {
    text: 'one that defines its own length',
  });
}
