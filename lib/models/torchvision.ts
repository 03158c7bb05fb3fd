import { standardImage, type Family } from './types.js';
import type { Parameter } from './types.js';

/** PyTorch's names and order, for comparison with programs that reduce the gradients of a torchvision model. */

const unitsOfStage = [3, 4, 6, 3];

export const torchvisionResnet50: Family = {
  name: 'torchvision-resnet50',
  description:
    "torchvision's resnet50: weight and bias of its normalisation are arrays like any other",
  numLayers: [],
  multipliers: [],
  imageShape: standardImage,
  build({ imageShape: [imageChannels], numClasses }) {
    const parameters: Parameter[] = [];
    const convNorm = (
      conv: string,
      norm: string,
      shape: readonly [number, number, number],
    ): void => {
      const [output, input, kernel] = shape;
      parameters.push(
        { name: `${conv}.weight`, shape: [output, input, kernel, kernel] },
        { name: `${norm}.weight`, shape: [output] },
        { name: `${norm}.bias`, shape: [output] },
      );
    };
    convNorm('conv1', 'bn1', [64, imageChannels, 7]);
    let channels = 64;
    for (const [stage, units] of unitsOfStage.entries()) {
      const inner = 64 * 2 ** stage;
      for (let unit = 0; unit < units; unit += 1) {
        const name = `layer${stage + 1}.${unit}`;
        convNorm(`${name}.conv1`, `${name}.bn1`, [inner, channels, 1]);
        convNorm(`${name}.conv2`, `${name}.bn2`, [inner, inner, 3]);
        convNorm(`${name}.conv3`, `${name}.bn3`, [4 * inner, inner, 1]);
        if (unit === 0) {
          convNorm(`${name}.downsample.0`, `${name}.downsample.1`, [4 * inner, channels, 1]);
        }
        channels = 4 * inner;
      }
    }
    parameters.push(
      { name: 'fc.weight', shape: [numClasses, channels] },
      { name: 'fc.bias', shape: [numClasses] },
    );
    return parameters;
  },
};
