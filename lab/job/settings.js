// What all jobs of lab/job/run.js train: the same network on the same samples, by as many ranks as there are.
import { learnable } from '../learnable.js';

/** The samples of a step, of all ranks together: 1, 2, 3 and 4 ranks have equal parts. */
export const globalBatch = 48;
/** Steps between two lines of a curve. */
export const logEvery = 5;

/** Both train to their target; the short one proves that all of it runs. */
export const lengths = {
  whole: { steps: 800, saveEvery: 80, target: 0.97 },
  quick: { steps: 200, saveEvery: 40, target: 0.85 },
};

const rate = 0.02;
/** The last third of the steps is taken with smaller ones, so that the end does not depend on the last few batches. */
export const rateAt = (step, steps) => (step < (steps * 2) / 3 ? rate : rate / 10);

export const shape = [32, 32, 3];
export const makeData = () => learnable({ shape, signal: 0.12, smooth: 2, held: 960 });
