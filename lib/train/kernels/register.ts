// Registers gradients that a TensorFlow.js backend lacks.
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

/** Existing kernels with a faster replacement. */
const faster: Readonly<Record<string, readonly (readonly [string, KernelFunc])[]>> = {
  wasm: [[tf.Conv2DBackpropInput, inputGradient]],
};

const replaced = new Set<string>();

/**
 * Adds missing gradients to a backend such as wasm, so that convolutional networks and embeddings train there: of
 * convolutions by their filters, of depthwise convolutions, and of gather. Existing ones stay, except wasm's gradient
 * of a convolution by its input, which is replaced by a faster one. Convolutions must be NHWC, as for the backend's
 * own. Idempotent.
 *
 * @param backend - its name in `tf.getBackend()`
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
  // The type does not include undefined.
  return (tf.getKernel(kernelName, backend) as unknown) !== undefined;
}
