// The native surface of the key-value store: native/binding/kvstore_wrap*.cc.

// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- filled by its area
export interface KVStoreNatives {}
