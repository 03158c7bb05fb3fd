// What lab/ and bench/gpu.js use beyond the public interface. Bundled into dist/ with the rest, so that they share its
// state, and not packed: nobody outside the checkout may rely on it.
export { benchMain as main } from './cli/gpu.js';
export { nativeOf } from './communicator/communicator.js';
export { reduceOpNumber } from './communicator/reduce-op.js';
export { chartSvg } from './report/charts/render.js';
export { describeEnvironment } from './results/environment.js';
export { native } from './native/load.js';
export { nativeCombine, nativeMemoryLoops } from './native/measure.js';
export { parseDType } from './tensor/dtype.js';
