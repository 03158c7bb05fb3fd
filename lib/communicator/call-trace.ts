// Writes a communicator's operations to a timeline: when each ran, and how long it had waited.
import { monotonicSeconds } from '../time.js';
import { GradlinkError } from '../errors.js';
import { ownFile } from '../files/index.js';
import { Timeline, timelineFile } from '../files/timeline.js';
import type { LeasedArrays } from '../tensor/leases.js';
import { nonEmpty } from '../checks.js';
import type { Executor } from './executor.js';

/** Names a file for the timeline of {@link Communicator.world}. */
export const timelineVariable = 'GRADLINK_TIMELINE';

export class CallTrace {
  readonly #timeline: Timeline;
  readonly #close: (() => void) | undefined;
  /** Operations run one after another: the next starts when the one before has ended. */
  #lastEnd = 0;

  /** @param owned - whether this closes the timeline, or the process. */
  constructor(timeline: Timeline, owned: boolean) {
    this.#timeline = timeline;
    if (!owned) return;
    // Otherwise the last events are lost if nobody closes.
    const close = () => {
      timeline.close();
    };
    process.once('exit', close);
    this.#close = () => {
      process.off('exit', close);
      close();
    };
  }

  end(): void {
    this.#close?.();
  }

  /** @returns to be called at the operation's end */
  begin(op: string, reads: LeasedArrays, writes: LeasedArrays): () => void {
    const issued = monotonicSeconds();
    return () => {
      const end = monotonicSeconds();
      const start = Math.min(Math.max(issued, this.#lastEnd), end);
      this.#lastEnd = end;
      const waitedMs = Math.round((start - issued) * 1e6) / 1e3;
      const bytes = bytesOf(reads) || bytesOf(writes);
      this.#timeline.add('communication', op, start, end, { bytes, waitedMs });
    };
  }
}

function bytesOf(arrays: LeasedArrays): number {
  if (arrays === null) return 0;
  if (!Array.isArray(arrays)) return (arrays as { readonly byteLength: number }).byteLength;
  return (arrays as readonly LeasedArrays[]).reduce((sum, one) => sum + bytesOf(one), 0);
}

export function startTimeline(executor: Executor, file: unknown): void {
  const path = nonEmpty(file, 'file');
  if (executor.trace !== undefined) {
    const message = 'startTimeline: a timeline is being written: call stopTimeline() first';
    throw new GradlinkError('ERR_UNSUPPORTED', message, { op: 'startTimeline', usable: true });
  }
  const { rank, heldRanks, takesLists, size } = executor;
  const holdsAll = takesLists && heldRanks.length === size;
  const timeline = holdsAll
    ? new Timeline(path, { label: `group of ${size}` })
    : new Timeline(ownFile(timelineFile(path, rank)), {
        rank,
        ...(heldRanks.length === 1 ? {} : { label: `ranks ${heldRanks.join(', ')}` }),
      });
  executor.trace = new CallTrace(timeline, true);
}
