import type { SymbolicTensor } from '@tensorflow/tfjs-layers';

import { classifier } from './resnet.js';
import { apply, imagesOf, join, type ModelKind } from './types.js';

/** Expansion, channels, blocks, and first stride of each stage. */
const stages = [
  [1, 16, 1, 1],
  [6, 24, 2, 2],
  [6, 32, 3, 2],
  [6, 64, 4, 2],
  [6, 96, 3, 1],
  [6, 160, 3, 2],
  [6, 320, 1, 1],
] as const;

/** MobileNetV2 of width 1. With 10 classes 2,236,682 trainable parameters in 158 variables. */
export const mobilenetv2: ModelKind = {
  description: 'MobileNetV2, 2,236,682 parameters with 10 classes',
  inputShape: [32, 32, 3],
  classes: 10,
  inputType: 'float32',
  sampleName: 'img',
  wrongShape: imagesOf(32),
  build(maker, shape, classes) {
    const { layers } = maker;
    const normalised = (x: SymbolicTensor): SymbolicTensor =>
      apply(layers.batchNormalization({ momentum: 0.999, epsilon: 1e-3 }), x);
    const relu6 = (x: SymbolicTensor): SymbolicTensor => apply(layers.reLU({ maxValue: 6 }), x);
    const convolve = (
      x: SymbolicTensor,
      filters: number,
      kernelSize: number,
      strides = 1,
    ): SymbolicTensor =>
      normalised(
        apply(
          layers.conv2d({
            filters,
            kernelSize,
            strides,
            padding: 'same',
            useBias: false,
            kernelInitializer: maker.glorot(),
          }),
          x,
        ),
      );
    const input = maker.input(shape);
    let x = relu6(convolve(input, 32, 3, 2));
    let channels = 32;
    for (const [expansion, filters, blocks, firstStride] of stages) {
      for (let block = 0; block < blocks; ++block) {
        const strides = block === 0 ? firstStride : 1;
        let inner = expansion === 1 ? x : relu6(convolve(x, expansion * channels, 1));
        const depthwise = layers.depthwiseConv2d({
          kernelSize: 3,
          strides,
          padding: 'same',
          useBias: false,
          depthwiseInitializer: maker.glorot(),
        });
        inner = relu6(normalised(apply(depthwise, inner)));
        inner = convolve(inner, filters, 1);
        x = strides === 1 && channels === filters ? join(layers.add(), [x, inner]) : inner;
        channels = filters;
      }
    }
    x = relu6(convolve(x, 1280, 1));
    return maker.model(input, classifier(maker, x, classes));
  },
};
