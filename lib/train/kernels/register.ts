// Gradients that a backend of TensorFlow.js lacks.
import type { KernelFunc } from '@tensorflow/tfjs-core';

import { tf } from '../tfjs.js';
import { filterGradient, inputGradient } from './convolution.js';
import { depthwiseFilterGradient, depthwiseInputGradient } from './depthwise.js';
import { unsortedSegmentSum } from './segments.js';

const kernels: readonly (readonly [name: string, kernel: KernelFunc])[] = [
  [tf.Conv2DBackpropFilter, filterGradient],
  [tf.DepthwiseConv2dNativeBackpropFilter, depthwiseFilterGradient],
  [tf.DepthwiseConv2dNativeBackpropInput, depthwiseInputGradient],
  [tf.UnsortedSegmentSum, unsortedSegmentSum],
];

/** Which there are, but slower than what they are replaced by. */
const faster: Readonly<Record<string, readonly (readonly [string, KernelFunc])[]>> = {
  wasm: [[tf.Conv2DBackpropInput, inputGradient]],
};

const replaced = new Set<string>();

/**
 * Adds the gradients of convolutions by their filters, of depthwise convolutions, and of gathering (embeddings) to a
 * backend that lacks them, as wasm does, so that convolutional networks and embeddings train there. Those that the
 * backend has stay, but for wasm's gradient of a convolution by its input, which is replaced by one that takes
 * less time. Convolutions in NHWC only, as the backend's own. Idempotent.
 *
 * @param backend - as `tf.getBackend()` has it.
 */
export function registerGradientKernels(backend: string): void {
  for (const [kernelName, kernelFunc] of kernels) {
    if (!has(kernelName, backend)) {
      tf.registerKernel({ kernelName, backendName: backend, kernelFunc });
    }
  }
  if (replaced.has(backend)) return;
  replaced.add(backend);
  for (const [kernelName, kernelFunc] of faster[backend] ?? []) {
    if (has(kernelName, backend)) tf.unregisterKernel(kernelName, backend);
    tf.registerKernel({ kernelName, backendName: backend, kernelFunc });
  }
}

function has(kernelName: string, backend: string): boolean {
  // Its type does not tell that there may be none.
  return (tf.getKernel(kernelName, backend) as unknown) !== undefined;
}
