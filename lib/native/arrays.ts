// The arrays that native code takes. They stand on the ground floor: what knows element types is built on them.

/** Memory with the elements of any dtype, as Node-API hands it over. */
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
