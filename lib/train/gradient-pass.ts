// A forward and backward pass that hands each gradient to a reducer once it exists.
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

/** The receiver of gradients. */
export interface GradientSink {
  /** Seconds of copying in {@link add} and {@link end}. */
  readonly copySeconds: number;
  /** Between forward and backward pass: for each variable 1 if it has a gradient, else 0. */
  begin(used: Uint8Array): void;
  /** The tensor must live until {@link end} has returned. */
  add(index: number, gradient: Tensor): void;
  /** The backward pass is done. */
  end(): void;
  /**
   * The pass failed.
   *
   * @param begun - whether after {@link begin}
   */
  fail(cause: unknown, begun: boolean): void;
}

/** How a {@link GradientReducer} is used. */
export interface ReducerRequest {
  /** Factor of gradients; 1 when absent. */
  readonly scale?: number | undefined;
  /** False: gradients are only accumulated. */
  readonly reduce: boolean;
  /** Whether this rank needs only its part of each bucket. */
  readonly part?: boolean | undefined;
  /** Whether a bucket's gradients are read at once; if that is cheaper when absent. */
  readonly gather?: boolean | undefined;
  /** Called between the passes, before any reduction, with 1 for each variable that the loss depends on. */
  readonly onForward?: ((used: Uint8Array) => void) | undefined;
}

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
      // Other ranks may already wait for this one's buckets, which will not come.
      if (begun) comm.abort(`the backward pass of rank ${comm.rank} failed: ${String(cause)}`);
      else if (reduce) failForAll(comm, 'the pass', cause);
    },
  };
}

/** A finished backward pass, whose reductions may still run. */
export interface PassUnderway {
  readonly value: Scalar;
  readonly forwardEnd: number;
  readonly backwardEnd: number;
  readonly forwardStart: number;
  readonly copySeconds: number;
}

type Tape = ReturnType<typeof tf.engine>['state']['activeTape'];

/**
 * Runs `loss` and computes its gradients by `variables`. Each gradient goes to the sink during the backward pass, once
 * complete.
 *
 * TensorFlow.js has no gradient hooks. So each variable passes through an identity with a custom gradient, and the tape
 * is rewritten to use the identity's result wherever `loss` uses the variable. The gradient then accumulates from all
 * uses, and the identity's comes last.
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

/** Ends a pass after its reduction: returns its times and adds them to the timeline. */
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
    // Shares the values, which a clone copies on some backends.
    value: tf.reshape(x as Tensor, variable.shape),
    gradFunc: (dy: Tensor) => {
      caught(index, dy);
      return dy;
    },
  }));
  return pass(variable);
}

/**
 * Replaces each variable on the tape by its identity's result. The identity moves right before its first user: the
 * backward pass runs from the end of the tape and reaches it once the gradient is complete.
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
  // Unused identities are dropped.
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
