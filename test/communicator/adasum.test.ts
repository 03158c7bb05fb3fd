import { describe, expect, it } from 'vitest';

import { adasumOf } from '../../lib/communicator/collectives/adasum.js';
import { executorOf } from '../../lib/communicator/base.js';
import { Communicator } from '../../lib/communicator/communicator.js';
import { halfTable, toHalf } from '../../lib/tensor/half.js';
import { errorWith } from '../support/errors.js';
import { codeOf, ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();
const op = 'adasum';

/** The formula, on whole vectors in float64. */
function pair(a: readonly number[], b: readonly number[]): number[] {
  const dot = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  const share = (own: readonly number[]) => {
    const squared = dot(own, own);
    return squared === 0 ? 1 : 1 - dot(a, b) / (2 * squared);
  };
  return a.map((value, i) => share(a) * value + share(b) * b[i]!);
}

/** What is more than a power of two joins the first ranks; then pairs, pairs of pairs, and so on. */
function reference(vectors: readonly (readonly number[])[]): number[] {
  const power = 2 ** Math.floor(Math.log2(vectors.length));
  let level = vectors
    .slice(0, power)
    .map((one, rank) =>
      rank + power < vectors.length ? pair(one, vectors[rank + power]!) : [...one],
    );
  while (level.length > 1) {
    level = Array.from({ length: level.length / 2 }, (_, i) =>
      pair(level[2 * i]!, level[2 * i + 1]!),
    );
  }
  return level[0]!;
}

const vector = (rank: number, length: number) =>
  Array.from({ length }, (_, i) => Math.sin((rank + 2) * (i + 1)) + rank / 4);
const vectors = (n: number, length: number) =>
  Array.from({ length: n }, (_, rank) => vector(rank, length));

function expectNear(got: ArrayLike<number>, want: readonly number[], tolerance: number): void {
  const most = Math.max(...want.map(Math.abs), 1);
  expect(got).toHaveLength(want.length);
  const apart = want.map((value, i) => Math.abs(value - got[i]!) / most);
  expect(Math.max(0, ...apart)).toBeLessThan(tolerance);
}

describe("allReduce with op 'adasum'", () => {
  const sizes = [1, 2, 3, 4, 5, 6, 7, 8];

  it.each(sizes)('is the formula over pairs, of %i ranks', async (n) => {
    const ranks = await open(n);
    await using group = Communicator.local(n);
    for (const length of [1, 2, 5, 1000]) {
      const inputs = vectors(n, length);
      const want = reference(inputs);
      const doubles = await Promise.all(
        ranks.map((one, rank) => one.allReduce(Float64Array.from(inputs[rank]!), { op })),
      );
      for (const one of doubles) {
        expectNear(one, want, 1e-12);
        expect(one).toEqual(doubles[0]);
      }
      const data = inputs.map((one) => Float32Array.from(one));
      const out = data.map(() => new Float32Array(length));
      const singles = await Promise.all(
        ranks.map((one, rank) => one.allReduce(data[rank]!, { op, out: out[rank]! })),
      );
      expect(singles).toEqual(out);
      for (const one of out) expectNear(one, want, 1e-5);
      expect(data).toEqual(inputs.map((one) => Float32Array.from(one)));
      const here = group.allReduceSync(
        inputs.map((one) => Float64Array.from(one)),
        { op },
      );
      for (const one of here) expectNear(one, want, 1e-12);
    }
  });

  it.each(['float16', 'bfloat16'] as const)('of %s in float32', async (dtype) => {
    const ranks = await open(3);
    const table = halfTable(dtype);
    const inputs = vectors(3, 33).map((one) => Uint16Array.from(one, (x) => toHalf(dtype, x)));
    const want = reference(inputs.map((one) => Array.from(one, (bits) => table[bits]!)));
    const got = await Promise.all(
      ranks.map((one, rank) => one.allReduce(inputs[rank]!, { op, dtype })),
    );
    for (const one of got) {
      const values = Array.from(one, (bits) => table[bits]!);
      expectNear(values, want, dtype === 'float16' ? 1e-3 : 1e-2);
    }
  });

  it.each(sizes)('is the formula for each variable by itself, of %i ranks', async (n) => {
    const ranks = await open(n);
    const offsets = [0, 1, 40, 40, 47, 100];
    const inputs = vectors(n, 100);
    const want = offsets.slice(1).flatMap((end, part) => {
      const parts = inputs.map((one) => one.slice(offsets[part], end));
      return parts[0]!.length === 0 ? [] : reference(parts);
    });
    const data = inputs.map((one) => Float32Array.from(one));
    await Promise.all(ranks.map((one, rank) => adasumOf(executorOf(one), data[rank], {}, offsets)));
    for (const one of data) {
      expectNear(one, want, 1e-6);
      expect(one).toEqual(data[0]);
    }
  });

  const large = 2 ** 600;
  const onAll = async (inputs: readonly Float64Array[], offsets?: readonly number[]) => {
    const ranks = await open(inputs.length);
    await using group = Communicator.local(inputs.length);
    const here = inputs.map((one) => one.slice());
    const apart = inputs.map((one) => one.slice());
    if (offsets === undefined) group.allReduceSync(here, { op });
    await Promise.all(
      ranks.map((one, rank) => adasumOf(executorOf(one), apart[rank], {}, offsets)),
    );
    for (const one of apart) expect(one).toEqual(apart[0]);
    return offsets === undefined ? [here[0]!, apart[0]!] : [apart[0]!];
  };

  it.each([large, 1 / large])('takes squares beyond float64: vectors times %d', async (scale) => {
    const inputs = vectors(5, 40);
    const scaled = inputs.map((one) => Float64Array.from(one, (value) => value * scale));
    for (const got of await onAll(scaled)) {
      expectNear(
        got.map((value) => value / scale),
        reference(inputs),
        1e-12,
      );
    }
    // Beside an ordinary one.
    const parts = inputs.map((one) => Float64Array.from([...one.map((x) => x * scale), ...one]));
    const [both] = await onAll(parts, [0, 40, 80]);
    const [first, second] = [both!.subarray(0, 40), both!.subarray(40)];
    expectNear(
      first.map((value) => value / scale),
      reference(inputs),
      1e-12,
    );
    expectNear(second, reference(inputs), 1e-12);
  });

  it('takes vectors of any two magnitudes', async () => {
    // What is parallel is averaged, what is orthogonal is added, of nothing too.
    const scales = [large, 1 / large, 3, 1e-300];
    const parallel = scales.map((scale) => Float64Array.of(3 * scale, 0, -4 * scale));
    const apart = [0, ...scales, 0];
    const orthogonal = apart.map((scale, rank) => new Float64Array(6).fill(scale, rank, rank + 1));
    for (const got of await onAll(parallel)) {
      expectNear(
        got.map((value) => value / large),
        [0.75, 0, -1],
        1e-15,
      );
    }
    for (const got of await onAll(orthogonal)) expect(got).toEqual(Float64Array.from(apart));
  });

  it('keeps what leaves the type between the steps', async () => {
    const signs = [
      [1, 1],
      [1, -1],
      [-1, -1],
      [-1, 1],
    ] as const;
    // The sums of the first two and of the last two are twice as large, and opposite.
    for (const got of await onAll(signs.map((one) => Float64Array.from(one, (x) => x * 1.5e308)))) {
      expect(got).toEqual(new Float64Array(2));
    }
    const ranks = await open(4);
    const singles = await Promise.all(
      ranks.map((one, rank) =>
        one.allReduce(
          Float32Array.from(signs[rank]!, (x) => x * 3e38),
          { op },
        ),
      ),
    );
    expect(singles).toEqual(ranks.map(() => new Float32Array(2)));
    const wrong = await Promise.all(
      ranks.map((one, rank) => one.allReduce(Float64Array.of(rank === 2 ? NaN : 1, 1e308), { op })),
    );
    for (const one of wrong) expect(one[0]).toBeNaN();
  });

  it('is ERR_MISMATCH on every rank where counts differ, and the ranks go on', async () => {
    const ranks = await open(3);
    const ended = await Promise.allSettled(
      ranks.map((one, rank) => one.allReduce(new Float32Array(rank === 1 ? 2 : 3), { op })),
    );
    expect(ended.map(codeOf)).toEqual(ranks.map(() => 'ERR_MISMATCH'));
    await Promise.all(ranks.map((one) => one.barrier()));
  });

  it('refuses integers and scales', async () => {
    const [one] = await open(2);
    await expect(one!.allReduce(new Int32Array(1), { op })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /op 'adasum'.*int32/),
    );
    await expect(one!.allReduce(new Float32Array(1), { op, scale: 2 })).rejects.toThrow(
      /\bscale .*'adasum'/,
    );
  });
});
