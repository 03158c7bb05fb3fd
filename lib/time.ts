// The clock that everybody reads, and how long a rank waits for others.

/** Seconds of the monotonic clock (CLOCK_MONOTONIC), which native code reads too and all processes of a host share. */
export function monotonicSeconds(): number {
  return Number(process.hrtime.bigint()) / 1e9;
}

/** Timers of Node that are to wait longer fire at once. */
export const longestTimerMs = 2 ** 31 - 1;

/**
 * Calls `what` once, after any time.
 *
 * @returns what calls it off
 */
export function after(ms: number, what: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (left: number): void => {
    const rearm = left > longestTimerMs;
    timer = rearm ? setTimeout(arm, longestTimerMs, left - longestTimerMs) : setTimeout(what, left);
  };
  arm(ms);
  return () => {
    clearTimeout(timer);
  };
}

/** Milliseconds of a call, or until all have met, where nobody says. */
export const defaultTimeoutMs = 30_000;
