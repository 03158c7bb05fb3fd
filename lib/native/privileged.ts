// Whether this process has more rights than who started it: set-user-ID, or a node with file capabilities.
import { readFileSync } from 'node:fs';

import { hasCode } from '../files/index.js';

/** AT_SECURE of getauxval(3): the system's loader then takes no path from the environment. */
const secure = 23n;

/** What the kernel told this process, as pairs of numbers. */
export function isPrivileged(file = '/proc/self/auxv'): boolean {
  try {
    const bytes = readFileSync(file);
    const words = Array.from({ length: Math.floor(bytes.length / 8) }, (_, at) =>
      bytes.readBigUInt64LE(at * 8),
    );
    return words.some((key, at) => at % 2 === 0 && key === secure && words[at + 1] !== 0n);
  } catch (error) {
    // What a process with more rights knows of itself belongs to root. Without /proc nothing is known.
    return !hasCode(error, 'ENOENT', 'ENOTDIR');
  }
}
