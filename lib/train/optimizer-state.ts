// The full state of an optimizer apart from its class: for broadcasts and comparisons. TensorFlow.js's optimizers keep
// rates and counts in properties, which getWeights() omits, and some have no getWeights().
import type { DataType, Tensor, Variable } from '@tensorflow/tfjs-core';
import type { NamedTensor } from '@tensorflow/tfjs-core/dist/tensor_types.js';

import { aFunction, having } from '../checks.js';
import { tf } from './tfjs.js';
import type { InnerOptimizer } from './types.js';

/** A tensor that is sent. */
export interface TensorSpec {
  readonly dtype: 'float32' | 'int32' | 'bool';
  readonly shape: readonly number[];
}

/** A property: a cloneable value, a tensor by its number, or nested properties. */
type Packed =
  | { readonly value: unknown }
  | { readonly tensor: number; readonly trainable: boolean | undefined }
  | { readonly list: readonly Packed[] }
  | { readonly fields: Fields };
type Fields = readonly (readonly [string, Packed])[];

/** The wire format without the tensors' values. */
export interface PackedState {
  readonly fields: Fields;
  /** Names of the getWeights() tensors, which follow those of the fields; empty if the fields cover everything. */
  readonly weights: readonly string[];
  readonly tensors: readonly TensorSpec[];
}

/** The counters of a gradlink wrapper around an optimizer. */
export const wrapper = Symbol('wrapper');

/** An optimizer that wraps another. */
export interface Wrapper {
  readonly [wrapper]: {
    readonly inner: InnerOptimizer;
    /** Settings that must be equal on all ranks. */
    readonly settings: Readonly<Record<string, unknown>>;
    /** Counters that are copied from the root. */
    counts: Readonly<Record<string, number>>;
  };
}

const optimizerKind = having({ getWeights: aFunction, setWeights: aFunction });

export class OptimizerState {
  readonly #optimizer: InnerOptimizer;
  readonly #wrapper: Wrapper[typeof wrapper] | undefined;

  private constructor(given: InnerOptimizer) {
    this.#wrapper = (given as Partial<Wrapper>)[wrapper];
    this.#optimizer = this.#wrapper?.inner ?? given;
  }

  /** @throws TypeError unless it is an optimizer */
  static of(given: InnerOptimizer): OptimizerState {
    optimizerKind(given, 'optimizer');
    return new OptimizerState(given);
  }

  /** Must be equal on all ranks. */
  get kind(): string {
    return `${this.#wrapper === undefined ? '' : 'a wrapped '}${kindOf(this.#optimizer)}`;
  }

  /** The settings as texts, for comparison between ranks. */
  settings(): Record<string, string> {
    return settingsOf(this.#optimizer, this.#wrapper?.settings);
  }

  /** The tensors belong to the optimizer, except `made`, which the caller disposes. */
  async pack(): Promise<{ state: PackedState; tensors: Tensor[]; made: Tensor[] }> {
    const tensors: Tensor[] = [];
    const fields = packFields(this.#optimizer, tensors, new Set()) ?? [];
    const counts = Object.entries(this.#wrapper?.counts ?? {});
    const named = hasOwnWeights(this.#optimizer) ? await this.#optimizer.getWeights() : [];
    const held = new Set(tensors.map(({ id }) => id));
    tensors.push(...named.map(({ tensor }) => tensor));
    // Its own variables are not copies; the step count is a new tensor.
    const made = named
      .map(({ tensor }) => tensor)
      .filter((tensor) => !held.has(tensor.id) && !(tensor instanceof tf.Variable));
    return {
      state: {
        fields: [...fields, ...counts.map(([name, value]) => [countOf(name), { value }] as const)],
        weights: named.map(({ name }) => name),
        tensors: tensors.map(({ dtype, shape }) => ({
          dtype: dtype as TensorSpec['dtype'],
          shape,
        })),
      },
      tensors,
      made,
    };
  }

  /** @param values - of the tensors; ownership passes to this optimizer */
  async unpack(
    { fields, weights, tensors }: PackedState,
    values: readonly Tensor[],
  ): Promise<void> {
    const first = tensors.length - weights.length;
    if (weights.length > 0) {
      const named: NamedTensor[] = weights.map((name, i) => ({ name, tensor: values[first + i]! }));
      await this.#optimizer.setWeights(named);
      tf.dispose(values.slice(first));
    }
    const counts = Object.keys(this.#wrapper?.counts ?? {});
    const own = this.#optimizer as unknown as Record<string, unknown>;
    const isCount = (name: string) => counts.some((one) => countOf(one) === name);
    unpackFields(
      fields.filter(([name]) => !isCount(name)),
      values,
      own,
    );
    if (this.#wrapper === undefined) return;
    const came = new Map(fields.filter(([name]) => isCount(name)));
    this.#wrapper.counts = Object.fromEntries(
      counts.map((name) => [name, (came.get(countOf(name)) as { value: number }).value]),
    );
  }
}

/** The class of an optimizer without a wrapper. */
export function kindOf(optimizer: object): string {
  const { getClassName } = optimizer as { getClassName?: unknown };
  const { name } = optimizer.constructor;
  const said = typeof getClassName === 'function' ? String(getClassName.call(optimizer)) : name;
  return `${said} (class ${name})`;
}

/** The values of getConfig() and `more`, each as text. */
export function settingsOf(optimizer: object, more?: object): Record<string, string> {
  const { getConfig } = optimizer as { getConfig?: unknown };
  const config: unknown = typeof getConfig === 'function' ? getConfig.call(optimizer) : undefined;
  const all = Object.entries({ ...(config as object | undefined), ...more });
  return Object.fromEntries(all.map(([name, value]) => [name, settingText(value)]));
}

/** No optimizer has a property with this name. */
const countOf = (name: string): string => `wrapper ${name}`;

/** Whether its class overrides TensorFlow.js's getWeights(). */
export function hasOwnWeights(optimizer: InnerOptimizer): boolean {
  const ofTensorFlow = [
    tf.Optimizer,
    tf.SGDOptimizer,
    tf.MomentumOptimizer,
    tf.AdagradOptimizer,
    tf.AdadeltaOptimizer,
    tf.AdamOptimizer,
    tf.AdamaxOptimizer,
    tf.RMSPropOptimizer,
  ];
  return ofTensorFlow.every(({ prototype }) => prototype.getWeights !== optimizer.getWeights);
}

/** Equal values give equal texts. */
function settingText(value: unknown): string {
  if (value === null || typeof value !== 'object') return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    // It contains itself.
    return 'an object';
  }
}

const isPlain = (value: object): boolean =>
  [Object.prototype, null].includes(Object.getPrototypeOf(value) as object | null);

/** Undefined for values that cannot be sent. */
function pack(value: unknown, tensors: Tensor[], around: Set<object>): Packed | undefined {
  if (value === null || ['number', 'string', 'boolean', 'bigint'].includes(typeof value)) {
    return { value };
  }
  if (typeof value !== 'object' || around.has(value)) return undefined;
  if (value instanceof tf.Tensor) {
    const { trainable } = value as Partial<Variable>;
    tensors.push(value as Tensor);
    return { tensor: tensors.length - 1, trainable };
  }
  if (ArrayBuffer.isView(value)) return { value };
  const before = tensors.length;
  around.add(value);
  let packed: Packed | undefined;
  if (Array.isArray(value)) {
    const list = Array.from(value as unknown[], (one) =>
      one === undefined ? { value: one } : pack(one, tensors, around),
    );
    if (list.every((one) => one !== undefined)) packed = { list };
  } else if (isPlain(value)) {
    const fields = packFields(value, tensors, around, true);
    if (fields !== undefined) packed = { fields };
  }
  around.delete(value);
  if (packed === undefined) tensors.length = before;
  return packed;
}

/** @param whole - whether one unsendable part excludes the rest */
function packFields(
  of: object,
  tensors: Tensor[],
  around: Set<object>,
  whole = false,
): Fields | undefined {
  const fields: (readonly [string, Packed])[] = [];
  for (const [name, value] of Object.entries(of)) {
    if (value === undefined) continue;
    const packed = pack(value, tensors, around);
    if (packed !== undefined) fields.push([name, packed]);
    else if (whole) return undefined;
  }
  return fields;
}

/** Replaces a value; a variable of the same shape stays and gets the new values. */
function unpack(packed: Packed, values: readonly Tensor[], before: unknown): unknown {
  if ('value' in packed) {
    release(before);
    return packed.value;
  }
  if ('tensor' in packed) {
    const tensor = values[packed.tensor]!;
    if (fits(before, tensor) && before.trainable === packed.trainable) {
      before.assign(tensor);
      tensor.dispose();
      return before;
    }
    release(before);
    if (packed.trainable === undefined) return tf.keep(tensor);
    const variable = tf.variable(tensor, packed.trainable);
    tensor.dispose();
    return variable;
  }
  if ('list' in packed) {
    const old: unknown[] = Array.isArray(before) ? (before as unknown[]) : [];
    if (!Array.isArray(before)) release(before);
    old.slice(packed.list.length).forEach(release);
    return packed.list.map((one, i) => unpack(one, values, old[i]));
  }
  const old = before !== null && typeof before === 'object' && isPlain(before) ? before : undefined;
  if (old === undefined) release(before);
  const into = { ...old } as Record<string, unknown>;
  unpackFields(packed.fields, values, into);
  return into;
}

function unpackFields(
  fields: Fields,
  values: readonly Tensor[],
  into: Record<string, unknown>,
): void {
  for (const [name, packed] of fields) into[name] = unpack(packed, values, into[name]);
  const came = new Set(fields.map(([name]) => name));
  for (const [name, value] of Object.entries(into)) {
    // Resets properties that the root lacks; unsendable ones stay.
    if (came.has(name) || pack(value, [], new Set()) === undefined) continue;
    release(value);
    into[name] = undefined;
  }
}

function fits(before: unknown, { shape, dtype }: Tensor): before is Variable {
  const expected: { shape: readonly number[]; dtype: DataType } = { shape, dtype };
  return (
    before instanceof tf.Variable &&
    !(before as Variable).isDisposed &&
    (before as Variable).dtype === expected.dtype &&
    tf.util.arraysEqual((before as Variable).shape, [...expected.shape])
  );
}

/** Disposes the tensors in a discarded value. */
function release(value: unknown): void {
  for (const tensor of tensorsIn(value)) if (!tensor.isDisposed) tensor.dispose();
}

/** The tensors in a sendable value. */
export function tensorsIn(value: unknown): Tensor[] {
  const tensors: Tensor[] = [];
  pack(value, tensors, new Set());
  return tensors;
}
