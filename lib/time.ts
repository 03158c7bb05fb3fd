// The shared clock, and timeouts.

/** Seconds of CLOCK_MONOTONIC, which native code and all processes of a host share. */
export function monotonicSeconds(): number {
  return Number(process.hrtime.bigint()) / 1e9;
}

/** Longer timers of Node fire at once. */
export const longestTimerMs = 2 ** 31 - 1;

/**
 * Calls `what` once after any time.
 *
 * @returns cancels it
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

/** Default milliseconds of a call or a rendezvous. */
export const defaultTimeoutMs = 30_000;
