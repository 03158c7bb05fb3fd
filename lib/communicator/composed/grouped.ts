// Several arrays in one all-reduce: all or none.
import { argumentError } from '../../errors.js';
import { dtypeNumber, storageOf } from '../../tensor/any-array.js';
import { allocate, dtypeNames, isWeighable } from '../../tensor/dtype.js';
import type { DType, HalfDType, NumericArray, StorageArray } from '../../tensor/dtype.js';
import { lease, release, type Leases } from '../../tensor/leases.js';
import { assertFixedLength } from '../../tensor/memory.js';
import {
  arrayOf,
  finiteNumber,
  milliseconds,
  optionNames,
  optionsObject,
  wellFormed,
} from '../../checks.js';
import { beginTogether, goOn, type Said } from './agreement.js';
import type { Communicator } from '../communicator.js';
import { hostRank } from './objects.js';
import { reduceOpNumber } from '../calls/reduce-op.js';
import type { ReduceOp } from '../calls/reduce-op.js';
import type { CallOptions } from '../calls/types.js';

/** Options of {@link allReduceMany}. */
export interface ManyOptions extends CallOptions {
  /** How values are combined; `'sum'` when absent. */
  op?: ReduceOp | undefined;
  /** Factor of the data before it is added: sums and averages of floats. */
  scale?: number | undefined;
  /** Factor of the result. */
  postscale?: number | undefined;
  /** The type of Uint16Arrays. */
  dtype?: HalfDType | undefined;
  /** The same on all ranks, such as `'grad/conv1'`: errors of all ranks show it. */
  name?: string | undefined;
}

const manyNames = optionNames<ManyOptions>({
  op: true,
  scale: true,
  postscale: true,
  dtype: true,
  name: true,
  timeoutMs: true,
});

const op = 'allReduceMany';

/**
 * Collective: {@link Communicator.allReduce} of many arrays in place, packed into one per element type. All or none: if
 * ranks do not agree or one fails, all arrays are unchanged.
 *
 * Await it before the next call of this communicator.
 *
 * @param arrays - of the same number, lengths and types on all ranks.
 * @throws GradlinkError ERR_MISMATCH on every rank if names, lengths, types or ops differ, with each rank's call. If
 *   one rank's arguments are invalid, the others get it with that rank's error.
 */
export async function allReduceMany<A extends NumericArray>(
  communicator: Communicator,
  arrays: readonly A[],
  options?: ManyOptions,
): Promise<readonly A[]> {
  hostRank(communicator);
  let leases: Leases | undefined;
  try {
    const [{ packs, given }] = await beginTogether(communicator, op, options, () => {
      const [said, many] = manyOf(arrays, options);
      leases = lease(
        op,
        null,
        many.packs.flatMap((pack) => pack.arrays),
      );
      return [said, many] as const;
    });
    const { timeoutMs, scale, postscale } = given;
    const factors = {
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(scale === undefined ? {} : { scale }),
      ...(postscale === undefined ? {} : { postscale }),
    };
    await goOn(communicator, op, async () => {
      const results: StorageArray[] = [];
      for (const { dtype, packed } of packs) {
        const one = { op: given.op ?? 'sum', dtype, ...factors };
        results.push(await communicator.allReduce(packed as Float32Array, one as never));
      }
      packs.forEach((pack, i) => unpack(results[i]!, pack.arrays));
    });
  } finally {
    if (leases !== undefined) release(leases);
  }
  return arrays;
}

/** One rank's arrays, validated. */
function manyOf(
  arrays: readonly unknown[],
  options: ManyOptions | undefined,
): readonly [Said, { readonly packs: readonly Pack[]; readonly given: ManyOptions }] {
  const given = optionsObject(options, manyNames, op);
  milliseconds(given.timeoutMs, 'timeoutMs', -1);
  const name = given.name === undefined ? '' : wellFormed(given.name, 'name');
  const packs = packsOf(arrayOf(arrays, 'arrays'), given);
  checkScales(given, packs);
  const lengths = packs.map(
    (pack) => `${pack.dtype}[${pack.arrays.map((one) => one.length).join(', ')}]`,
  );
  const { scale = 1, postscale = 1 } = given;
  const brings = [...lengths, given.op ?? 'sum', scale, postscale].join(' ');
  return [
    { op, name, brings, count: 0 },
    { packs, given },
  ];
}

interface Pack {
  readonly dtype: DType;
  readonly arrays: StorageArray[];
  readonly packed: StorageArray;
}

/** The arrays of each type, concatenated. */
function packsOf(arrays: readonly unknown[], { dtype }: ManyOptions): Pack[] {
  const byType = new Map<number, StorageArray[]>();
  arrays.forEach((array, i) => {
    const isHalf = array instanceof Uint16Array;
    const number = dtypeNumber(array, isHalf ? dtype : undefined, `arrays[${i}]`);
    assertFixedLength(array as NumericArray, `arrays[${i}]`);
    const storage = storageOf(array as NumericArray) as StorageArray;
    byType.set(number, [...(byType.get(number) ?? []), storage]);
  });
  return [...byType].map(([number, storages]) => {
    const packed = allocate(
      number,
      storages.reduce((sum, one) => sum + one.length, 0),
    );
    let at = 0;
    for (const one of storages) {
      packed.set(one as never, at);
      at += one.length;
    }
    return { dtype: dtypeNames[number] as DType, arrays: storages, packed };
  });
}

function unpack(packed: StorageArray, arrays: readonly StorageArray[]): void {
  let at = 0;
  for (const one of arrays) {
    one.set(packed.subarray(at, at + one.length) as never);
    at += one.length;
  }
}

/** Before the exchange with other ranks: one rank refusing later would leave them waiting. */
function checkScales(
  { op: reduceOp, scale, postscale }: ManyOptions,
  packs: readonly Pack[],
): void {
  reduceOpNumber(reduceOp);
  if (scale === undefined && postscale === undefined) return;
  finiteNumber(scale ?? 1, 'scale');
  finiteNumber(postscale ?? 1, 'postscale');
  if (reduceOp !== undefined && reduceOp !== 'sum' && reduceOp !== 'avg') {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'op', "'sum' or 'avg' with a scale", reduceOp);
  }
  const whole = packs.find(({ dtype }) => !isWeighable(dtypeNames.indexOf(dtype)));
  if (whole === undefined) return;
  throw argumentError('ERR_INVALID_ARG_VALUE', 'arrays', 'floats with a scale', {
    text: whole.dtype,
  });
}
