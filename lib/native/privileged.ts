// Whether this process has more rights than its starter: set-user-ID, or a node with file capabilities.
import { readFileSync } from 'node:fs';

import { hasCode } from '../files/index.js';

/** AT_SECURE of getauxval(3): the loader then ignores paths from the environment. */
const secure = 23n;

/** Reads the kernel's auxiliary vector, pairs of numbers. */
export function isPrivileged(file = '/proc/self/auxv'): boolean {
  try {
    const bytes = readFileSync(file);
    const words = Array.from({ length: Math.floor(bytes.length / 8) }, (_, at) =>
      bytes.readBigUInt64LE(at * 8),
    );
    return words.some((key, at) => at % 2 === 0 && key === secure && words[at + 1] !== 0n);
  } catch (error) {
    // A privileged process cannot read its own file, which belongs to root. Without /proc it is unknown.
    return !hasCode(error, 'ENOENT', 'ENOTDIR');
  }
}
