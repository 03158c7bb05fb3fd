// Gradients in buckets: placed in memory shared by the ranks, filled one by one, reduced by native code.
import { withCallStack } from '../../call-stack.js';
import { nativeOf, type Communicator } from '../../communicator/communicator.js';
import { GradlinkError, argumentError } from '../../errors.js';
import { native } from '../../native/load.js';
import type { NativeBucketHook, NativeBuckets } from '../../native/train.js';
import { integer, milliseconds, oneOf, optionNames, optionsObject } from '../../checks.js';
import { assertRankOnHost } from '../ranks.js';
import { Attendance, joinedPasses } from './attendance.js';
import { feedsBack, parseHook, plainHook } from './hooks.js';
import { bucketLimits, elementsOf, gradientsKind, planBuckets, planGiven } from './plan.js';
import { reduceModes } from './types.js';
import type {
  AttendOptions,
  Bucket,
  BucketPlan,
  BucketTimes,
  GradientSpec,
  JoinedPasses,
  PassOptions,
  ReduceMode,
  ReducerOptions,
} from './types.js';

const reducerNames = optionNames<ReducerOptions>({
  mode: true,
  bucketCapBytes: true,
  firstBucketBytes: true,
  rebuild: true,
  buckets: true,
  op: true,
  hook: true,
  timeoutMs: true,
});
const passNames = optionNames<PassOptions>({ uses: true, scale: true, reduce: true, part: true });

/** Parts start at multiples of this many elements. */
const partStep = 16;

/** Gradients in arrays that every rank of the host maps, with their native side. */
interface Layout {
  readonly plan: readonly BucketPlan[];
  readonly buckets: readonly Bucket[];
  /** Each gradient's view into them. */
  readonly views: readonly Float32Array[];
  readonly native: NativeBuckets;
}

interface Pass {
  readonly uses: Uint32Array;
  readonly scale: number;
  readonly reduces: boolean;
  readonly part: boolean;
  /** Gradients held until the backward pass ends, if buckets are filled afterwards. */
  readonly held: Float32Array[][] | undefined;
}

/**
 * Reduces gradients over the ranks in buckets, as PyTorch's DistributedDataParallel does: {@link begin} a pass,
 * {@link add} each gradient, {@link finish}, and read the results with {@link gradient}.
 *
 * Copies and collectives are native. In `overlap` mode the add() that completes a bucket starts its collective on the
 * communicator's thread, while JavaScript continues. Buckets are reduced in a fixed order, so that all ranks make the
 * same calls. All ranks give the same gradients, options and passes; uses, scales and the order of add() may differ.
 */
export class GradientReducer {
  /** When buckets are reduced. */
  readonly mode: ReduceMode;
  /** The given gradients. */
  readonly gradients: readonly GradientSpec[];
  readonly #communicator: Communicator;
  readonly #limits: readonly number[];
  readonly #op: number;
  readonly #hook: NativeBucketHook;
  readonly #timeoutMs: number;
  readonly #attendance: Attendance;
  #layout: Layout;
  /** Replaces the layout at the next pass; until then gradients are read from the old one. */
  #next: Layout | undefined;
  /** The order of gradients in the first pass; undefined if not needed. */
  #order: number[] | undefined;
  #pass: Pass | undefined;
  #finishing = false;
  #joined = false;

  /** @throws GradlinkError ERR_UNSUPPORTED for a group, and for a communicator with arrays on GPUs */
  constructor(
    communicator: Communicator,
    gradients: readonly GradientSpec[],
    options?: ReducerOptions,
  ) {
    const given = optionsObject(options, reducerNames, 'GradientReducer');
    const { mode = 'overlap', buckets } = given;
    const op: string = given.op ?? 'avg';
    oneOf(mode, 'mode', reduceModes);
    oneOf(op, 'op', ['avg', 'sum']);
    assertRankOnHost(communicator, 'gradient buckets');
    gradientsKind(gradients, 'gradients');
    // Rank 0 decides the order, and it may have joined without a pass.
    const rebuild = (given.rebuild ?? true) && buckets === undefined && !communicator.joinable;
    this.mode = mode;
    this.gradients = gradients;
    this.#communicator = communicator;
    this.#limits = bucketLimits(given);
    this.#op = op === 'sum' ? 0 : 1;
    this.#hook = parseHook(given.hook);
    this.#timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', -1);
    this.#attendance = new Attendance(communicator, op === 'avg', this.#timeoutMs);
    this.#order = rebuild ? [] : undefined;
    // A hook's residual belongs to its bucket, so hooks start with the final layout.
    this.#layout = this.#lay(
      buckets === undefined ? planBuckets(gradients, this.#limits) : planGiven(gradients, buckets),
      rebuild && feedsBack(this.#hook) ? plainHook : this.#hook,
    );
  }

  /** The buckets in order of reduction. */
  get plan(): readonly BucketPlan[] {
    return (this.#next ?? this.#layout).plan;
  }

  /** @internal The buckets of the current pass, or of the last one, with their arrays. */
  get buckets(): readonly Bucket[] {
    return this.#layout.buckets;
  }

  #lay(plan: readonly BucketPlan[], hook: NativeBucketHook): Layout {
    const { size } = this.#communicator;
    const parts = plan.map(({ elements }) => Math.ceil(elements / size / partStep) * partStep);
    const arrays = parts.map((part) => this.#communicator.allocShared('float32', part * size));
    const slots = new Float64Array(this.gradients.length * 4);
    const views: Float32Array[] = [];
    plan.forEach((bucket, at) => {
      let offset = 0;
      for (const index of bucket.gradients) {
        const gradient = this.gradients[index]!;
        const elements = elementsOf(gradient);
        const columns = gradient.shape.length < 2 ? elements : gradient.shape.at(-1)!;
        slots.set([at, offset, columns === 0 ? 0 : elements / columns, columns], index * 4);
        views[index] = arrays[at]!.subarray(offset, offset + elements);
        offset += elements;
      }
    });
    const { NativeBuckets } = native();
    return {
      plan,
      buckets: plan.map(({ gradients, elements }, at) => ({
        gradients,
        elements,
        data: arrays[at]!,
        part: parts[at]!,
      })),
      views,
      native: new NativeBuckets(
        nativeOf(this.#communicator),
        arrays,
        slots,
        this.#op,
        hook,
        this.#timeoutMs,
      ),
    };
  }

  /**
   * Begins a pass, which overwrites the arrays from {@link gradient}.
   *
   * @throws GradlinkError ERR_UNSUPPORTED while a pass is open.
   */
  begin(options?: PassOptions): void {
    if (this.#joined) throw misused('begin() after join(), which has not finished; await it first');
    this.#begin(options);
  }

  #begin(options?: PassOptions): void {
    const {
      uses,
      scale = 1,
      reduce = true,
      part = false,
    } = optionsObject(options, passNames, 'begin');
    if (this.#pass !== undefined || this.#finishing) {
      throw misused('begin() while a pass is open; finish() it, and wait for it, first');
    }
    if (uses !== undefined && !this.#isUses(uses)) {
      const expected = `${this.gradients.length} numbers, one for each gradient`;
      throw argumentError('ERR_INVALID_ARG_VALUE', 'uses', expected, uses);
    }
    if (typeof scale !== 'number' || !Number.isFinite(scale)) {
      throw argumentError('ERR_INVALID_ARG_VALUE', 'scale', 'a finite number', scale);
    }
    if (this.#next !== undefined) {
      this.#layout = this.#next;
      this.#next = undefined;
    }
    const times =
      uses === undefined
        ? new Uint32Array(this.gradients.length).fill(1)
        : Uint32Array.from(uses, (count) => count);
    // Without a collective to wait for, holding arrays back gains nothing.
    const direct = this.mode === 'overlap' || !reduce;
    this.#pass = {
      uses: times,
      scale,
      reduces: reduce,
      part,
      held: direct ? undefined : this.gradients.map(() => []),
    };
    if (direct) this.#layout.native.begin(times, scale, reduce, part);
  }

  /**
   * Adds a gradient, or a part of one that is used several times. In `overlap` mode it is copied at once; in other
   * modes do not change the array before {@link finish}. An array from {@link GradientReducer.gradient} after begin()
   * is already in place and is not copied.
   *
   * @throws TypeError for a wrong length, GradlinkError ERR_UNSUPPORTED outside a pass and beyond the announced uses.
   */
  add(index: number, gradient: Float32Array): void {
    const pass = this.#open('add()');
    const view = this.#layout.views[index];
    if (view === undefined) {
      const expected = `an index below ${this.gradients.length}`;
      throw argumentError('ERR_OUT_OF_RANGE', 'index', expected, index);
    }
    if (!(gradient instanceof Float32Array) || gradient.length !== view.length) {
      const expected = `a Float32Array of ${view.length} for ${this.gradients[index]!.name}`;
      throw argumentError('ERR_INVALID_ARG_VALUE', 'gradient', expected, gradient);
    }
    const left = pass.uses[index]!;
    if (left === 0) {
      throw misused(`add() of ${this.gradients[index]!.name} more often than begin() announced`);
    }
    pass.uses[index] = left - 1;
    if (left === 1) this.#order?.push(index);
    if (pass.held === undefined) this.#layout.native.add(index, gradient);
    else pass.held[index]!.push(gradient);
  }

  /**
   * Ends the pass; missing gradients count as zeros. Resolves when all buckets are reduced.
   *
   * @returns the times of each bucket; empty without a reduction.
   * @throws GradlinkError as a collective does: ERR_PEER_LOST, ERR_TIMEOUT, ERR_MISMATCH, ERR_ABORTED, ERR_CLOSED.
   */
  async finish(): Promise<readonly BucketTimes[]> {
    const pass = this.#open('finish()');
    this.#pass = undefined;
    if (!pass.reduces) return [];
    this.#finishing = true;
    try {
      const { native: buckets, plan } = this.#layout;
      if (pass.held !== undefined) {
        this.#beginHeld(pass, pass.held);
        for (const bucket of plan) {
          this.#fill(bucket, pass.held);
          if (this.mode === 'sync') await buckets.wait();
        }
      }
      buckets.flush();
      const times = await withCallStack(() => buckets.wait());
      const order = this.#takeOrder();
      if (order !== undefined) this.#rebuild(await this.#communicator.broadcast(order));
      return timesOf(times);
    } finally {
      this.#finishing = false;
    }
  }

  /** {@link finish}, blocking: for callers that cannot await. No peer may need this thread. */
  finishSync(): readonly BucketTimes[] {
    const pass = this.#open('finishSync()');
    this.#pass = undefined;
    if (!pass.reduces) return [];
    const { native: buckets, plan } = this.#layout;
    if (pass.held !== undefined) {
      this.#beginHeld(pass, pass.held);
      for (const bucket of plan) {
        this.#fill(bucket, pass.held);
        if (this.mode === 'sync') buckets.waitSync();
      }
    }
    buckets.flush();
    const times = buckets.waitSync();
    const order = this.#takeOrder();
    if (order !== undefined) this.#rebuild(this.#communicator.broadcastSync(order));
    return timesOf(times);
  }

  /**
   * Collective, for ranks that may run out of data: call it before {@link begin} of each pass, even without a
   * reduction. Ranks without data are in {@link join}.
   *
   * @returns the `scale` of that pass, which averages only over ranks that make it.
   */
  async attend(options?: AttendOptions): Promise<number> {
    this.#assertIdle('attend()');
    return await this.#attendance.attend(options);
  }

  /**
   * Collective, for a rank without further data: takes part in the others' passes without gradients until all have
   * joined. The others {@link attend} each pass. `after` can read the reduced gradients.
   *
   * @returns the rank that joined last; the highest of several.
   * @throws GradlinkError as a collective does, mainly ERR_PEER_LOST. If `before` or `after` throws, the communicator
   *   is aborted on all ranks.
   */
  async join(passes?: JoinedPasses): Promise<number> {
    const given = joinedPasses(passes);
    this.#assertIdle('join()');
    this.#joined = true;
    const uses = new Uint32Array(this.gradients.length);
    try {
      return await this.#attendance.join(given, async () => {
        this.#begin({ uses, part: given.part });
        await this.finish();
      });
    } finally {
      this.#joined = false;
    }
  }

  #assertIdle(what: string): void {
    if (this.#joined) throw misused(`${what} after join(), which has not finished; await it first`);
    if (this.#pass !== undefined || this.#finishing) {
      throw misused(`${what} while a pass is open; finish() it, and wait for it, first`);
    }
  }

  /**
   * The reduced gradient after {@link finish}, as a view of its bucket that the next pass overwrites. Also the sum so
   * far, after a pass without a reduction.
   */
  gradient(index: number): Float32Array {
    return this.#layout.views[integer(index, 'index', 0, this.gradients.length - 1)]!;
  }

  #isUses(uses: unknown): boolean {
    const { length } = Object(uses) as { readonly length?: unknown };
    return typeof uses === 'object' && length === this.gradients.length;
  }

  #open(what: string): Pass {
    if (this.#pass === undefined) throw misused(`${what} without begin()`);
    return this.#pass;
  }

  #beginHeld({ scale, part }: Pass, held: readonly (readonly Float32Array[])[]): void {
    const came = Uint32Array.from(held, (arrays) => arrays.length);
    this.#layout.native.begin(came, scale, true, part);
  }

  #fill(bucket: BucketPlan, held: readonly (readonly Float32Array[])[]): void {
    for (const index of bucket.gradients) {
      for (const array of held[index]!) this.#layout.native.add(index, array);
    }
  }

  /** The order for rebuilding, with missing gradients last; undefined if there is nothing to rebuild. */
  #takeOrder(): Int32Array<ArrayBuffer> | undefined {
    if (this.#order === undefined) return undefined;
    const came = new Set(this.#order);
    const rest = [...this.gradients.keys()].filter((index) => !came.has(index)).reverse();
    this.#order = undefined;
    return Int32Array.from([...came, ...rest]);
  }

  #rebuild(order: Int32Array): void {
    const hook = { ...this.#hook, startPass: this.#hook.startPass - 1 };
    this.#next = this.#lay(planBuckets(this.gradients, this.#limits, [...order]), hook);
  }
}

function misused(message: string): GradlinkError {
  return new GradlinkError('ERR_UNSUPPORTED', `gradient buckets: ${message}`, { usable: true });
}

function timesOf(times: Float64Array): readonly BucketTimes[] {
  return Array.from({ length: times.length / 3 }, (_, bucket) => ({
    bucket,
    readySeconds: times[3 * bucket]!,
    startSeconds: times[3 * bucket + 1]!,
    endSeconds: times[3 * bucket + 2]!,
  }));
}
