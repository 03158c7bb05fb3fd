// What decentralised methods need: a vector, a gradient, and a way to average.

/** Parameters as plain numbers; each rank has its own copy. */
export type Vector = Float32Array | Float64Array;

/**
 * Averages in place with whom the method is to average: `(w) => comm.neighborAllReduce(w)`, on a static or a changing
 * graph, or `comm.allReduce(w, { op: 'avg' })`. Each method calls it once a step, so that a schedule may be advanced in it; with
 * all that has to be averaged one after the other, which may be longer than the parameters.
 */
export type Combine<V extends Vector = Vector> = (values: V) => Promise<unknown>;

/** Writes the gradient of this rank's own loss at `parameters` to `gradient`, of the same length. */
export type Gradient<V extends Vector = Vector> = (
  parameters: V,
  gradient: V,
) => void | Promise<void>;

/** What every method is made of. */
export interface DecentralisedOptions<V extends Vector = Vector> {
  /** The start; changed in place by every step. */
  readonly parameters: V;
  /** Of this rank's own loss, at the given weights. */
  readonly gradient: Gradient<V>;
  /** What the gradient is multiplied by, or that by the number of the step, from 0. */
  readonly stepSize: number | ((step: number) => number);
}

/** A method on its way. */
export interface DecentralisedMethod {
  /** One step; every rank makes it. Resolves when `parameters` are the next ones. */
  step(): Promise<void>;
}
