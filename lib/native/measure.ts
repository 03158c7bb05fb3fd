// The native surface of measuring: native/binding/measure_wrap*.cc.

// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- filled by its area
export interface MeasureNatives {}
