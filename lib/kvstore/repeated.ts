// List calls that come again. On GPUs checking hundreds of arrays takes longer than moving them, so what was checked
// once is recognised by the very lists it came in.
import type { NativeStoreCall } from '../native/kvstore.js';
import type { AnyArray } from '../tensor/any-array.js';
import { DeviceBuffer } from '../tensor/device-buffer.js';
import { LeaseGroup } from '../tensor/leases.js';
import type { KeyCall } from './calls.js';
import { partsOf } from './pending.js';
import type { PendingOperations } from './pending.js';

/** A call as it was checked: what it brought, element by element, and what native code made of it. */
export interface RepeatedCall {
  readonly native: NativeStoreCall;
  readonly leases: LeaseGroup;
  readonly ids: readonly number[];
}

interface Known extends RepeatedCall {
  readonly keys: readonly unknown[];
  readonly values: readonly unknown[] | undefined;
  readonly outs: readonly unknown[] | undefined;
}

type List = readonly unknown[];

/**
 * The calls of one store. A call is known as long as the list of its arrays lives; what is disposed of meanwhile native
 * code notices.
 */
export class RepeatedCalls {
  /** By the list of arrays, then by operation. */
  readonly #known = new WeakMap<object, Map<string, Known>>();
  readonly #owner: PendingOperations;

  constructor(owner: PendingOperations) {
    this.#owner = owner;
  }

  /** The same call, if it was remembered and brings the same arrays for the same keys. */
  find(op: string, keys: unknown, values: unknown, outs: unknown): RepeatedCall | undefined {
    const list = values ?? outs;
    if (typeof list !== 'object' || list === null) return undefined;
    const known = this.#known.get(list)?.get(op);
    if (known === undefined) return undefined;
    const same =
      sameItems(known.keys, keys) && sameItems(known.values, values) && sameItems(known.outs, outs);
    return same ? known : undefined;
  }

  /**
   * Remembers a list call that has passed all checks.
   *
   * @returns undefined where it is none that can be remembered: one key, a key twice, arrays that are not all on GPUs.
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
    if (!Array.isArray(keys) || !Array.isArray(list) || calls.length !== keys.length) {
      return undefined;
    }
    const onGpus = (arrays: readonly AnyArray[]): boolean =>
      arrays.every((array) => array instanceof DeviceBuffer);
    if (!calls.every(({ inputs, outputs }) => onGpus(inputs) && onGpus(outputs))) return undefined;
    const known: Known = {
      native: prepare(),
      leases: new LeaseGroup(op, partsOf(calls), this.#owner),
      ids: calls.map(({ info }) => info.id),
      keys: [...(keys as List)],
      values: copied(values),
      outs: copied(outs),
    };
    const ofList = this.#known.get(list) ?? new Map<string, Known>();
    this.#known.set(list, ofList.set(op, known));
    return known;
  }
}

/** The list and its lists. */
function copied(list: unknown): readonly unknown[] | undefined {
  if (list === undefined) return undefined;
  return (list as List).map((item) => (Array.isArray(item) ? [...(item as List)] : item));
}

function sameItems(known: readonly unknown[] | undefined, given: unknown): boolean {
  if (known === undefined) return given === undefined;
  if (!Array.isArray(given) || given.length !== known.length) return false;
  for (let i = 0; i < known.length; i += 1) {
    const a = known[i];
    const b: unknown = given[i];
    if (a !== b && !(Array.isArray(a) && sameItems(a as List, b))) return false;
  }
  return true;
}
