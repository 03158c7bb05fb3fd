// What lab/ uses beyond the public interface. Bundled into dist/ with the rest, so that they share its
// state, and not packed: nobody outside the checkout may rely on it.
export { benchMain as main } from './gpu/command.js';
export { surroundings } from '../lib/cli/surroundings.js';
export { nativeOf } from '../lib/communicator/communicator.js';
export { reduceOpNumber } from '../lib/communicator/calls/reduce-op.js';
export { chartSvg } from '../lib/report/charts/render.js';
export { describeEnvironment } from '../lib/results/environment.js';
export { native } from '../lib/native/load.js';
export { listenOn } from '../lib/network.js';
export { nativeCombine, nativeMemoryLoops } from '../lib/native/measure.js';
export { parseDType } from '../lib/tensor/dtype.js';
