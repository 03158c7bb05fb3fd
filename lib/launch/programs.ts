// Where the programs are that a launcher starts besides the user's.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import type { Command } from './job.js';

/** The package's folder: two up from lib/launch in the sources, three from dist/lib/launch in the package. */
function packageFolder(): URL {
  const source = new URL('../../', import.meta.url);
  return existsSync(new URL('package.json', source))
    ? source
    : new URL('../../../', import.meta.url);
}

/** What a server process runs. */
export function serverCommand(): Command {
  return [process.execPath, fileURLToPath(new URL('bench/gradlink.js', packageFolder())), 'serve'];
}
