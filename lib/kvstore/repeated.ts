// Repeated list calls. On GPUs validating hundreds of arrays takes longer than moving them, so validated calls are
// recognised by their lists.
import type { NativeStoreCall } from '../native/kvstore.js';
import type { AnyArray } from '../tensor/any-array.js';
import { DeviceBuffer } from '../tensor/device-buffer.js';
import { LeaseGroup } from '../tensor/leases.js';
import type { KeyCall } from './calls.js';
import { partsOf } from './pending.js';
import type { PendingOperations } from './pending.js';

/** A validated call: its arguments by element, and its native form. */
export interface RepeatedCall {
  readonly native: NativeStoreCall;
  readonly leases: LeaseGroup;
  readonly ids: readonly number[];
}

interface Known extends RepeatedCall {
  readonly keys: Flat;
  readonly values: Flat | undefined;
  readonly outs: Flat | undefined;
}

/** A flattened list: for nested lists the length, then the items. */
type Flat = readonly unknown[];

type List = readonly unknown[];

/**
 * The remembered calls of one store. A call lives as long as its list of arrays; native code detects disposed buffers.
 */
export class RepeatedCalls {
  /** By list of arrays, then by operation. */
  readonly #known = new WeakMap<object, Map<string, Known>>();
  readonly #owner: PendingOperations;

  constructor(owner: PendingOperations) {
    this.#owner = owner;
  }

  /** The remembered call with the same arrays and keys. */
  find(op: string, keys: unknown, values: unknown, outs: unknown): RepeatedCall | undefined {
    const list = values ?? outs;
    if (typeof list !== 'object' || list === null) return undefined;
    const known = this.#known.get(list)?.get(op);
    if (known === undefined) return undefined;
    const same = holds(known.keys, keys) && holds(known.values, values) && holds(known.outs, outs);
    return same ? known : undefined;
  }

  /**
   * Remembers a validated list call.
   *
   * @returns undefined if it does not qualify: fewer than two keys, a repeated key, or arrays not on GPUs
   */
  remember(
    op: string,
    keys: unknown,
    values: unknown,
    outs: unknown,
    calls: readonly KeyCall[],
    prepare: () => NativeStoreCall,
  ): RepeatedCall | undefined {
    const list = values ?? outs;
    if (!Array.isArray(keys) || !Array.isArray(list)) return undefined;
    if (calls.length === 0 || calls.length !== keys.length) return undefined;
    const onGpus = (arrays: readonly AnyArray[]): boolean =>
      arrays.every((array) => array instanceof DeviceBuffer);
    if (!calls.every(({ inputs, outputs }) => onGpus(inputs) && onGpus(outputs))) return undefined;
    const known: Known = {
      native: prepare(),
      leases: new LeaseGroup(op, partsOf(calls), this.#owner),
      ids: calls.map(({ info }) => info.id),
      keys: flat(keys as List),
      values: values === undefined ? undefined : flat(values as List),
      outs: outs === undefined ? undefined : flat(outs as List),
    };
    const ofList = this.#known.get(list) ?? new Map<string, Known>();
    this.#known.set(list, ofList.set(op, known));
    return known;
  }
}

function flat(list: List): Flat {
  return list.flatMap((item) => (Array.isArray(item) ? [item.length, ...(item as List)] : [item]));
}

/** Whether a list has the same items. Object.is does not dereference the objects, which are seldom in the caches. */
function holds(known: Flat | undefined, given: unknown): boolean {
  if (known === undefined) return given === undefined;
  if (!Array.isArray(given)) return false;
  let at = 0;
  for (const item of given as List) {
    if (!Array.isArray(item)) {
      if (!Object.is(known[at++], item)) return false;
      continue;
    }
    if (known[at++] !== item.length) return false;
    for (const array of item as List) if (!Object.is(known[at++], array)) return false;
  }
  return at === known.length;
}
