// Checks that an array's length is its real one: a subclass could report any, and memory is allocated by it.
import { argumentError } from '../errors.js';

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
const intrinsic = ['length', 'byteLength', 'byteOffset', 'buffer'] as const;

// Cached, because small calls take nanoseconds.
let lastPrototype: object | null = null;

/** %TypedArray%.prototype of any realm: its getter is native. */
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

/** @throws TypeError if the array's length or offset is a redefined property */
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
