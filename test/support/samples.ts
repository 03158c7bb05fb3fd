// The outputs that guides show, beside what commands print: alike but for their figures.
import { expect } from 'vitest';

import { blocksOf } from './guides.js';

/** Lines with their figures, and the room that these take, left out. */
export const shapeOf = (text: string): string =>
  text.replace(/\d+(?:\.\d+)?(?:e[+-]?\d+)?/g, '#').replace(/ +/g, ' ');

/** The block of a guide that has these words shows lines of the printed ones, in their order; `...` leaves some out. */
export function expectSample(guide: string, words: string, printed: string | readonly string[]) {
  const block = blocksOf(guide, ['console', 'text', '']).find((one) => one.includes(words)) ?? '';
  const pieces = shapeOf(block.replace(/^\$ .*\n/, '')).split(/^ ?\.\.\.\n/m);
  let rest = `${shapeOf(typeof printed === 'string' ? printed : printed.join('\n'))}\n`;
  for (const piece of pieces) {
    expect(rest, guide).toContain(piece);
    rest = rest.slice(rest.indexOf(piece) + piece.length);
  }
}
