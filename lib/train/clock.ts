export { monotonicSeconds } from '../clock.js';
