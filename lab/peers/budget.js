// How long a job may take: estimated from a short run of the same contender, because machines differ by ten and more, and held
// against what is left of the whole run's time.

/** @typedef {{wallSeconds: number, times: Map<number, number>}} Warm wallSeconds: of the whole warm-up; times: seconds of one call by bytes */

const minSamples = 5;
// One call to verify, up to five batches to warm up, and what filling and comparing the arrays cost.
const otherCalls = 12;
// Arrays, staging and what the library keeps beside them, in arrays of one rank.
const touchedArrays = 4;

/** The sizes a contender is warmed with: its smallest, which shows what starting costs, and one that is not large. */
export function warmSizes(sizes) {
  const largest = Math.max(...sizes);
  const middling = sizes.filter((bytes) => bytes <= Math.max(2 ** 20, largest / 16));
  return [...new Set([Math.min(...sizes), Math.max(...middling, Math.min(...sizes))])];
}

/** Seconds of one call at a size, from calls at others: never below a smaller one's, at most in proportion to the bytes. */
export function callSeconds(times, bytes) {
  const bounds = [...times].map(([known, seconds]) => seconds * Math.max(1, bytes / known));
  return bounds.length === 0 ? 0 : Math.min(...bounds);
}

/**
 * Seconds of a whole job.
 * @param {Warm} warm
 * @param {{ranks: number, sizes: number[], places: string[], seconds: number}} wanted
 * @param {{touchRate: number, calls?: (bytes: number) => number}} machine touchRate: bytes a second of memory touched for the
 *   first time; calls: of contenders that make a number of calls of their own, whatever they are asked for
 */
export function estimateSeconds(warm, wanted, { touchRate, calls }) {
  const each = wanted.sizes.map((bytes) => {
    const call = callSeconds(warm.times, bytes);
    const sampled =
      calls === undefined
        ? Math.max(wanted.seconds, minSamples * call) + otherCalls * call
        : calls(bytes) * call;
    const touched = (touchedArrays * wanted.ranks * bytes) / touchRate;
    return wanted.places.length * (sampled + touched);
  });
  return warm.wallSeconds + each.reduce((sum, seconds) => sum + seconds, 0);
}

/** The time of a whole run, and how much of it one job may take. */
export class Budget {
  #endsAt;
  #now;

  /**
   * @param {number} seconds
   * @param {{slack?: number, floorSeconds?: number, now?: () => number}} [options] slack: times its estimate a job may take;
   *   floorSeconds: what every job may take, since starting programs is the least steady part
   */
  constructor(seconds, { slack = 4, floorSeconds = 15, now = () => performance.now() / 1e3 } = {}) {
    this.#now = now;
    this.#endsAt = now() + seconds;
    this.seconds = seconds;
    this.slack = slack;
    this.floorSeconds = floorSeconds;
  }

  left() {
    return Math.max(0, this.#endsAt - this.#now());
  }

  /** A job's limit: what is left of the run bounds it, and a job that has not been tried may take a twentieth of the run. */
  limitOf(estimate) {
    const fair =
      estimate === undefined
        ? Math.max(this.floorSeconds, this.seconds / 20)
        : Math.max(this.floorSeconds, this.slack * estimate);
    return Math.min(fair, this.left());
  }
}

/**
 * Takes the largest sizes away from the jobs that take longest until one round of all fits.
 * @template {{sizes: number[]}} T
 * @param {T[]} jobs
 * @param {(job: T) => number} estimate
 * @param {number} seconds
 * @returns {{job: T, bytes: number}[]} what was taken; a job that lost all its sizes has none left
 */
export function fitRound(jobs, estimate, seconds) {
  const taken = [];
  for (;;) {
    const left = jobs.filter(({ sizes }) => sizes.length > 0);
    const total = left.reduce((sum, job) => sum + estimate(job), 0);
    if (total <= seconds || left.length === 0) return taken;
    const longest = left.reduce((a, b) => (estimate(b) > estimate(a) ? b : a));
    const bytes = Math.max(...longest.sizes);
    longest.sizes = longest.sizes.filter((size) => size !== bytes);
    taken.push({ job: longest, bytes });
  }
}
