// Where the package lies.
import { existsSync } from 'node:fs';

/** The folder with package.json. */
export function packageRoot(): URL {
  // Two folders up from lib/cli in the sources, three from dist/lib/cli in the package.
  const candidates = ['../../', '../../../'].map((path) => new URL(path, import.meta.url));
  const [sources] = candidates;
  return candidates.find((folder) => existsSync(new URL('package.json', folder))) ?? sources!;
}
