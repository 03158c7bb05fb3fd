// The package's own version, from its package.json.
import { readFileSync } from 'node:fs';

/** `0.1.0`. */
export function packageVersion(): string {
  // Two folders up from lib/cli in the sources, three from dist/lib/cli in the package.
  for (const candidate of ['../../package.json', '../../../package.json']) {
    try {
      const text = readFileSync(new URL(candidate, import.meta.url), 'utf8');
      return (JSON.parse(text) as { version: string }).version;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}
