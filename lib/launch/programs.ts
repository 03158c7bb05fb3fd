// The paths of the programs that a launcher starts besides the user's.
import { join, relative } from 'node:path';

import { packageFile } from '../package-folder.js';
import type { Command } from './job.js';

export function serverCommand(): Command {
  return [process.execPath, packageFile('bench/gradlink.js'), 'serve'];
}

/**
 * The command that mpirun and srun run for each process, before the user's command. Every host has Node and this
 * package at the same path. If the current folder was copied to `directory` and holds this package, it is below that.
 */
export function keeperCommand(directory: string | undefined): Command {
  const program = packageFile('dist/launch-rank.js');
  const below = relative(process.cwd(), program);
  const brought = directory !== undefined && !below.startsWith('..');
  return [process.execPath, brought ? join(directory, below) : program];
}
