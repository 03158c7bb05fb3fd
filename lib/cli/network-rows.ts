// Options that say which network: those of `measure`, `models` and `predict`.
import { above, choice, flag, items, whole, WrongValue, type Typed } from '../options/kinds.js';
import { optionTable } from '../options/table.js';
import type { ImageShape } from '../models/index.js';
import { aliases, networkNames } from '../models/names.js';

/** Channels, height and width: `3,224,224`. */
export const imageShape: Typed<ImageShape> = {
  parse(text) {
    const side = whole({ min: 1, max: 999_999 });
    try {
      const [channels, height, width, ...others] = items(text).map((part) => side.parse(part));
      if (width !== undefined && others.length === 0) return [channels!, height!, width];
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
    }
    throw new WrongValue(
      'Expected CHANNELS,HEIGHT,WIDTH in whole numbers of at least 1, such as 3,224,224.',
    );
  },
  show: String,
};

export const networkRows = optionTable({
  network: {
    flag: '--network <name>',
    help: 'whose gradients are exchanged (gradlink models)',
    kind: choice(networkNames, aliases),
    default: 'resnet',
  },
  numLayers: {
    flag: '--num-layers <count>',
    help: 'depth, where a network has several',
    kind: whole({ min: 1 }),
  },
  imageShape: {
    flag: '--image-shape <c,h,w>',
    help: 'channels, height and width',
    kind: imageShape,
  },
  numClasses: {
    flag: '--num-classes <count>',
    help: 'outputs of the classifier',
    kind: whole({ min: 1 }),
    default: 1000,
  },
  multiplier: {
    flag: '--multiplier <width>',
    help: 'width of the mobile networks',
    kind: above(0),
  },
  allParams: {
    flag: '--all-params',
    help: 'include the arrays of batch normalisation, which MXNet leaves out',
    kind: flag,
  },
});
