// What the scripts of bench/ use beyond the public interface. Bundled into dist/ with the rest, so that they share its
// state, and not packed: nobody outside the checkout may rely on it.
export { nativeOf } from './communicator/communicator.js';
export { reduceOpNumber } from './communicator/reduce-op.js';
export { describeEnvironment } from './results/environment.js';
export { describeGpus } from './measure/machine/gpu-environment.js';
export * as limits from './measure/machine/gpu-rates.js';
export { readMachine } from './measure/machine/gpus.js';
export { native } from './native/load.js';
export { nativeGpuLoops } from './native/gpu-measure.js';
export { nativeCombine, nativeMemoryLoops } from './native/measure.js';
export { gpuLines, tableLines } from './report/index.js';
export { parseDType } from './tensor/dtype.js';
