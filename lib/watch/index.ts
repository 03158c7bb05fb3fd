/** A run that goes on: its lines as they come, and the figures in them. */
export { Figures, figuresIn, type Figure } from './figures.js';
export { followCommand, followFile, followStream, type OnLine } from './follow.js';
