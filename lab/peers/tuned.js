// The best of Open MPI's algorithms and components for each size and place, by a short run of each.
import { nameOf, tunedId } from './cases.js';

// All trials together, of the whole run.
const share = 0.15;

/** @returns {Promise<{ranks: number, bytes: number, place: string, contender: object, fastest: number}[]>} */
export async function findTuned({ plan, wanted, budget, measure, say, waive, tunings }) {
  const best = new Map();
  const { ranks, sizes } = wanted;
  const until = budget.left() - share * budget.seconds;
  for (const contender of tunings()) {
    const job = { contender, wanted, name: `${nameOf(wanted, { id: tunedId })}` };
    // What cannot run was said of Open MPI itself.
    if (contender.waived() !== undefined) continue;
    if (budget.left() <= until) {
      waive(job, 'left out', 'no time to try it');
      continue;
    }
    say(`tuning: ${contender.label}`);
    const asked = { ranks, sizes, places: contender.places, seconds: plan.tuningSeconds };
    // Trials only choose; what is reported is measured in the rounds, beside the others.
    const keep = ({ bytes, place, seconds }) => {
      const fastest = Math.min(...seconds);
      const key = `${bytes} ${place}`;
      if (fastest < (best.get(key)?.fastest ?? Infinity)) {
        best.set(key, { ranks, bytes, place, contender, fastest });
      }
    };
    await measure(job, asked, { keep, limit: budget.limitOf(undefined) });
  }
  return [...best.values()];
}

/** One job for each algorithm and place, with all the sizes it won. */
export function jobsOf(tuned) {
  const jobs = new Map();
  for (const { contender, place, bytes } of tuned) {
    const key = `${contender.id} ${place}`;
    if (!jobs.has(key)) jobs.set(key, { contender, place, sizes: [] });
    jobs.get(key).sizes.push(bytes);
  }
  return [...jobs.values()];
}
