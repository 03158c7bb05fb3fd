// One forward and backward pass whose gradients go to a reducer the moment they exist.
import type { Scalar, Tensor, Variable } from '@tensorflow/tfjs-core';

import type { Communicator } from '../communicator/communicator.js';
import { failForAll } from '../communicator/composed/agreement.js';
import type { GradientReducer } from './buckets/reducer.js';
import type { BucketTimes } from './buckets/types.js';
import { monotonicSeconds } from '../time.js';
import { tf } from './tfjs.js';
import type { Timeline } from '../files/timeline.js';
import type { PassTimes } from './types.js';
import { gatherOf } from './gradient-gather.js';

/** Where gradients go. */
export interface GradientSink {
  /** Seconds of {@link add} and {@link end} that went into copying. */
  readonly copySeconds: number;
  /** Between the passes: for each variable 1 where a gradient will come, else 0. */
  begin(used: Uint8Array): void;
  /** The tensor lives until {@link end} has returned. */
  add(index: number, gradient: Tensor): void;
  /** The backward pass has run. */
  end(): void;
  /**
   * The pass has failed.
   *
   * @param begun - whether after {@link begin}.
   */
  fail(cause: unknown, begun: boolean): void;
}

/** How a {@link GradientReducer} is fed. */
export interface ReducerRequest {
  /** What gradients are multiplied by; 1 when absent. */
  readonly scale?: number | undefined;
  /** False: gradients are only added up. */
  readonly reduce: boolean;
  /** Whether this rank's part of each bucket is enough. */
  readonly part?: boolean | undefined;
  /** Whether a bucket's gradients are read at once; where that is cheaper when absent. */
  readonly gather?: boolean | undefined;
  /** Called between the passes, before anything is reduced, with 1 for each variable that the loss depends on. */
  readonly onForward?: ((used: Uint8Array) => void) | undefined;
}

/** A reducer as the place where gradients go. */
export function sinkOf(
  reducer: GradientReducer,
  comm: Communicator,
  { scale, reduce, part, gather, onForward }: ReducerRequest,
): GradientSink {
  const into = gatherOf(reducer, reduce, gather);
  return {
    get copySeconds() {
      return into.copySeconds;
    },
    begin: (uses) => {
      onForward?.(uses);
      reducer.begin({ uses, scale, reduce, part });
      into.begin(uses);
    },
    add: (index, gradient) => {
      into.add(index, gradient);
    },
    end: () => {
      into.end();
    },
    fail: (cause, begun) => {
      // Other ranks may already wait for this one's buckets, and nobody can make up for what is missing.
      if (begun) comm.abort(`the backward pass of rank ${comm.rank} failed: ${String(cause)}`);
      else if (reduce) failForAll(comm, 'the pass', cause);
    },
  };
}

/** A backward pass that has run; what it has started may still be on its way. */
export interface PassUnderway {
  readonly value: Scalar;
  readonly forwardEnd: number;
  readonly backwardEnd: number;
  readonly forwardStart: number;
  readonly copySeconds: number;
}

type Tape = ReturnType<typeof tf.engine>['state']['activeTape'];

/**
 * Runs `loss` and its gradients by `variables`. Each gradient goes to the sink inside the backward pass, once it is
 * whole.
 *
 * TensorFlow.js knows no hooks. So each variable is passed through an identity whose gradient is this function's own;
 * what `loss` computes from the variable itself is then, on the tape, made to look computed from the identity's result:
 * its gradient gathers there from all uses, and the identity's is asked for last.
 */
export function runPass(
  sink: GradientSink,
  variables: readonly Variable[],
  loss: () => Scalar,
): PassUnderway {
  const caught = (index: number, gradient: Tensor): void => {
    sink.add(index, gradient);
  };
  const state = { begun: false, forwardEnd: 0 };
  const forwardStart = monotonicSeconds();
  try {
    const { value, grads } = tf.variableGrads(() => {
      const passed = variables.map((variable, index) => identity(variable, index, caught));
      const result = loss();
      const tape = tf.engine().state.activeTape;
      reroute(tape, variables, passed);
      sink.begin(usesOf(tape, passed, result));
      state.begun = true;
      state.forwardEnd = monotonicSeconds();
      return result;
    }, [...variables]);
    sink.end();
    tf.dispose(grads);
    const { forwardEnd } = state;
    const { copySeconds } = sink;
    return { value, forwardStart, forwardEnd, backwardEnd: monotonicSeconds(), copySeconds };
  } catch (cause) {
    sink.fail(cause, state.begun);
    throw cause;
  }
}

/** Ends a pass whose reduction is done: what it took, also on the timeline. */
export function endPass(
  pass: PassUnderway,
  buckets: readonly BucketTimes[],
  timeline: Timeline | undefined,
): PassTimes {
  const end = monotonicSeconds();
  if (timeline !== undefined) {
    timeline.add('compute', 'forward', pass.forwardStart, pass.forwardEnd);
    timeline.add('compute', 'backward', pass.forwardEnd, pass.backwardEnd);
    timeline.add('compute', 'wait', pass.backwardEnd, end);
    for (const { bucket, startSeconds, endSeconds } of buckets) {
      timeline.add('communication', `bucket ${bucket}`, startSeconds, endSeconds);
    }
  }
  return {
    forwardSeconds: pass.forwardEnd - pass.forwardStart,
    backwardSeconds: end - pass.forwardEnd,
    waitSeconds: end - pass.backwardEnd,
    copySeconds: pass.copySeconds,
  };
}

function identity(
  variable: Variable,
  index: number,
  caught: (index: number, gradient: Tensor) => void,
): Tensor {
  const pass = tf.customGrad((x) => ({
    // Shares the values, where a clone copies them on some backends.
    value: tf.reshape(x as Tensor, variable.shape),
    gradFunc: (dy: Tensor) => {
      caught(index, dy);
      return dy;
    },
  }));
  return pass(variable);
}

/**
 * Whoever took a variable is said to have taken what its identity gave. The identity moves to just before the first who
 * did: the backward pass goes through the tape from its end, and comes to it as soon as the gradient is whole.
 */
function reroute(tape: Tape, variables: readonly Variable[], passed: readonly Tensor[]): void {
  const instead = new Map(variables.map(({ id }, index) => [id, passed[index]!]));
  const given = new Set(passed.map(({ id }) => id));
  const isIdentity = (node: Tape[number]) => node.outputs.some(({ id }) => given.has(id));
  const identities = new Map(
    tape.filter(isIdentity).map((node) => [node.outputs[0]!.id, node] as const),
  );
  const ordered: Tape = [];
  for (const node of tape) {
    if (isIdentity(node)) continue;
    for (const [name, input] of Object.entries(node.inputs)) {
      const result = instead.get(input.id);
      if (result === undefined) continue;
      node.inputs = { ...node.inputs, [name]: result };
      const identity = identities.get(result.id);
      if (identity !== undefined) ordered.push(identity);
      identities.delete(result.id);
    }
    ordered.push(node);
  }
  // Those that nobody used lead nowhere.
  tape.length = 0;
  for (const node of ordered) tape.push(node);
}

/** For each identity whether the result depends on it. */
function usesOf(tape: Tape, passed: readonly Tensor[], result: Tensor): Uint8Array {
  const needed = new Set([result.id]);
  for (const node of [...tape].reverse()) {
    if (!node.outputs.some(({ id }) => needed.has(id))) continue;
    for (const { id } of Object.values(node.inputs)) needed.add(id);
  }
  return Uint8Array.from(passed, ({ id }) => Number(needed.has(id)));
}
