// The parts of decentralised methods: a vector, a gradient, and an averaging.

/** Parameters as plain numbers; each rank has its own copy. */
export type Vector = Float32Array | Float64Array;

/**
 * Averages in place: `(w) => comm.neighborAllReduce(w)` on a static or changing graph, or `comm.allReduce(w, { op:
 * 'avg' })`. Each method calls it once per step, so it may advance a schedule. The vector may be longer than the
 * parameters.
 */
export type Combine<V extends Vector = Vector> = (values: V) => Promise<unknown>;

/** Writes the gradient of this rank's loss at `parameters` to `gradient`, of the same length. */
export type Gradient<V extends Vector = Vector> = (
  parameters: V,
  gradient: V,
) => void | Promise<void>;

/** The common options of all methods. */
export interface DecentralisedOptions<V extends Vector = Vector> {
  /** The initial values; each step changes them in place. */
  readonly parameters: V;
  /** Of this rank's loss. */
  readonly gradient: Gradient<V>;
  /** The step size, constant or by the number of the step from 0. */
  readonly stepSize: number | ((step: number) => number);
}

/** A running method. */
export interface DecentralisedMethod {
  /** One step; every rank calls it. Resolves when `parameters` are updated. */
  step(): Promise<void>;
}
