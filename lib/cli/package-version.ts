// The package's own version, from its package.json.
import { readFileSync } from 'node:fs';

import { packageRoot } from './package-root.js';

/** `0.1.0`. */
export function packageVersion(): string {
  try {
    const text = readFileSync(new URL('package.json', packageRoot()), 'utf8');
    return (JSON.parse(text) as { version: string }).version;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return 'unknown';
  }
}
