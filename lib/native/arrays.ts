// The arrays that native code takes, at the lowest layer because element types build on them.

/** Memory of any dtype, as Node-API passes it. */
export type StorageArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Uint16Array
  | Float32Array
  | Float64Array;
