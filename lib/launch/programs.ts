// Where the programs are that a launcher starts besides the user's.
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
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

/**
 * What mpirun and srun run for each process, before the user's command. Every host has Node and this package where this
 * one has them, or, where the current folder was brought to `directory` there and holds this package, below that.
 */
export function keeperCommand(directory: string | undefined): Command {
  const program = fileURLToPath(new URL('../cli/launch-rank.js', import.meta.url));
  const below = relative(process.cwd(), program);
  const brought = directory !== undefined && !below.startsWith('..');
  return [process.execPath, brought ? join(directory, below) : program];
}
