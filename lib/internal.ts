// What the scripts of bench/ use beyond the public interface. Bundled into dist/ with the rest, so that they share its
// state, and not packed: nobody outside the checkout may rely on it.
export { nativeOf } from './communicator/communicator.js';
export { reduceOpNumber } from './communicator/reduce-op.js';
export { describeEnvironment } from './measure/environment.js';
export { describeGpus } from './measure/gpu-environment.js';
export * as limits from './measure/p2p-limits.js';
export { readMachine } from './measure/p2p-machine.js';
export { native } from './native.js';
export { nativeGpuLoops } from './native/gpu-measure.js';
export { nativeCombine, nativeMemoryLoops } from './native/measure.js';
export { gpuLines, tableLines } from './report/index.js';
export { parseDType } from './tensor/dtype.js';
