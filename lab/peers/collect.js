// Turns contenders, cases and rounds into records. Contenders take turns within a round, so that what changes on the machine
// meanwhile (heat, a neighbour on the host) falls on all of them alike. Who fails or is late is listed, keeps what it had, and
// stops nobody else.
import { freemem } from 'node:os';
import { estimateSeconds, fitRound, warmSizes } from './budget.js';
import { nameOf, tunedId } from './cases.js';
import { LateError, runJob } from './children.js';
import { openMpiTunings } from './mpis.js';
import { findTuned, jobsOf } from './tuned.js';
import { here } from './work.js';

/**
 * @typedef {{contender: string, ranks: number, bytes: number, place: 'in' | 'out' | 'store' | 'pairs' | 'latency' | 'bandwidth', seconds: number[], wrong: number}} Record
 * @typedef {'waived' | 'failed' | 'late' | 'left out'} Why
 * @typedef {{contender: string, case?: string, kind: Why, reason: string}} Waiver
 * @typedef {{bytes: number, seconds: number}} Touched
 * @typedef {object} Collected
 * @property {Record[]} records
 * @property {object[]} memory
 * @property {Record<string, number[]>} overhead
 * @property {Record<string, number>} store
 * @property {{ranks: number, bytes: number, place: string, label: string}[]} tuned
 * @property {Waiver[]} waivers
 * @property {Touched | null} firstTouch
 * @property {number} rounds that were begun
 */

/** @returns {Collected} */
export const nothing = () => ({
  records: [],
  memory: [],
  overhead: {},
  store: {},
  tuned: [],
  waivers: [],
  firstTouch: null,
  rounds: 0,
});

// A round that is estimated to fill what is left would leave nothing for an estimate that was too low.
const planned = 0.8;
const touchedBytes = 2 ** 31;

/**
 * @param {import('./cases.js').Plan} plan
 * @param {import('./budget.js').Budget} budget
 * @param {{say: (line: string) => void, kept?: (run: Collected) => void, tunings?: () => Contender[]}} options kept: called
 *   whenever there is more than before
 * @returns {Promise<Collected>}
 */
export async function collectPeers(
  plan,
  budget,
  { say, kept = () => {}, tunings = openMpiTunings },
) {
  const run = nothing();
  const waive = (job, kind, reason) => {
    run.waivers.push({ contender: job.contender.label, case: job.wanted.name, kind, reason });
    kept(run);
  };
  const machine = await touch(plan, budget, run, say);

  /** Runs one job and keeps its lines as they come. Says whether it ended well. */
  const measure = async (job, wanted, { id = job.contender.id, limit, keep } = {}) => {
    const { contender } = job;
    const take =
      keep ??
      contender.keep ??
      ((line) => run.records.push({ contender: id, ranks: wanted.ranks, ...line }));
    try {
      await runJob(contender.programs(wanted), {
        timeoutMs: 1000 * limit,
        onRecord: (line) => take(line, run),
      });
      return true;
    } catch (error) {
      job.out = true;
      waive(job, error instanceof LateError ? 'late' : 'failed', error.message);
      return false;
    } finally {
      kept(run);
    }
  };

  const jobs = await warmed(jobsIn(plan, waive), { plan, budget, machine, measure, say, waive });
  const running = () => jobs.filter((job) => job.out !== true && job.sizes.length > 0);
  const estimate = (job) =>
    job.contender.estimate?.(machine) ??
    estimateSeconds(
      job.warm,
      { ...job.wanted, sizes: job.sizes, places: job.contender.places, seconds: plan.seconds },
      { ...machine, calls: job.contender.calls },
    );
  for (const { job, bytes } of fitRound(running(), estimate, planned * budget.left())) {
    waive(job, 'left out', `${bytes} bytes: no time for it in ${minutesText(budget)}`);
  }

  const tuned = new Map();
  for (let round = 0; round < plan.rounds; round += 1) {
    if (round > 0 && total(running().map(estimate)) >= budget.left()) break;
    run.rounds = round + 1;
    for (const wanted of plan.cases) {
      if (round >= (wanted.rounds ?? plan.rounds)) continue;
      for (const job of running().filter((candidate) => candidate.wanted === wanted)) {
        const expected = estimate(job);
        if (expected > budget.left()) {
          waive(job, 'left out', `round ${round + 1}: no time for it in ${minutesText(budget)}`);
          continue;
        }
        say(`round ${round + 1}: ${job.name}`);
        const started = performance.now();
        const ended = await measure(
          job,
          {
            ranks: wanted.ranks,
            sizes: job.sizes,
            places: job.contender.places,
            seconds: plan.seconds,
          },
          { limit: budget.limitOf(expected) },
        );
        // From now on what it took is known.
        const took = (performance.now() - started) / 1e3;
        if (ended) job.contender = { ...job.contender, estimate: () => took };
      }
      if (wanted.tuned !== true || plan.tuningSeconds === undefined) continue;
      if (!tuned.has(wanted)) {
        tuned.set(wanted, await findTuned({ plan, wanted, budget, measure, say, waive, tunings }));
        const labelled = tuned.get(wanted).map(({ contender, ...best }) => ({
          ...best,
          label: contender.label,
        }));
        run.tuned.push(...labelled);
      }
      for (const { contender, place, sizes } of jobsOf(tuned.get(wanted))) {
        if (budget.left() === 0) break;
        const job = { contender, wanted, name: nameOf(wanted, { id: tunedId }) };
        say(`round ${round + 1}: ${job.name}, ${contender.label}`);
        const asked = { ranks: wanted.ranks, sizes, places: [place], seconds: plan.seconds };
        await measure(job, asked, { id: tunedId, limit: budget.limitOf(undefined) });
      }
    }
  }
  return run;
}

const total = (values) => values.reduce((sum, value) => sum + value, 0);
const minutesText = ({ seconds }) => `the ${Number((seconds / 60).toPrecision(2))} minutes`;

/** One job for each contender of each case that can run here; the others are waived once. */
function jobsIn(plan, waive) {
  const reasons = new Map();
  const said = new Set();
  return plan.cases.flatMap((wanted) =>
    wanted.contenders.flatMap((contender) => {
      const { id } = contender;
      if (!reasons.has(id)) reasons.set(id, contender.waived());
      const sizes = contender.sizesOf?.(wanted.sizes) ?? wanted.sizes;
      const job = { contender, wanted, sizes, name: nameOf(wanted, contender) };
      const reason = reasons.get(id);
      if (reason === undefined) return sizes.length > 0 ? [job] : [];
      if (!said.has(id)) waive(job, 'waived', reason);
      said.add(id);
      return [];
    }),
  );
}

/** Memory of the size that the largest case needs, touched once before anything is timed. */
async function touch(plan, budget, run, say) {
  const largest = Math.max(...plan.cases.map(({ ranks, sizes }) => 2 * ranks * Math.max(...sizes)));
  const bytes = Math.min(touchedBytes, largest, Math.floor(freemem() / 2));
  const seconds = budget.seconds / 20;
  say('first touch of memory');
  try {
    const [line] = await runJob(
      [
        {
          command: process.execPath,
          args: [here('touch.js'), String(bytes), String(seconds)],
        },
      ],
      { timeoutMs: 1000 * budget.limitOf(2 * seconds) },
    );
    run.firstTouch = { bytes: line.bytes, seconds: line.seconds };
    say(`first touch: ${(line.bytes / line.seconds / 1e9).toPrecision(2)} GB/s`);
    return { touchRate: line.bytes / line.seconds };
  } catch (error) {
    say(`first touch could not be measured: ${error.message}`);
    return { touchRate: 1e9 };
  }
}

/** A short run of every contender: it loads what it needs, and shows what it will take. */
async function warmed(jobs, { plan, budget, machine, measure, say }) {
  for (const job of jobs) {
    if (job.contender.warmed === false) continue;
    say(`warm-up: ${job.name}`);
    const { ranks } = job.wanted;
    const sizes = warmSizes(job.sizes);
    const times = new Map();
    const started = performance.now();
    await measure(
      job,
      { ranks, sizes, places: job.contender.places, seconds: plan.seconds / 20 },
      {
        limit: budget.limitOf(job.contender.estimate?.(machine)),
        keep: ({ bytes, seconds }) => {
          if (bytes === undefined || seconds === undefined) return;
          times.set(bytes, Math.max(times.get(bytes) ?? 0, Math.min(...seconds)));
        },
      },
    );
    job.warm = { times, wallSeconds: (performance.now() - started) / 1e3 };
  }
  return jobs;
}
