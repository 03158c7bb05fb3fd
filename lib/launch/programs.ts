// Where the programs are that a launcher starts besides the user's.
import { join, relative } from 'node:path';

import { packageFile } from '../package-folder.js';
import type { Command } from './job.js';

/** What a server process runs. */
export function serverCommand(): Command {
  return [process.execPath, packageFile('bench/gradlink.js'), 'serve'];
}

/**
 * What mpirun and srun run for each process, before the user's command. Every host has Node and this package where this
 * one has them, or, where the current folder was brought to `directory` there and holds this package, below that.
 */
export function keeperCommand(directory: string | undefined): Command {
  const program = packageFile('dist/launch-rank.js');
  const below = relative(process.cwd(), program);
  const brought = directory !== undefined && !below.startsWith('..');
  return [process.execPath, brought ? join(directory, below) : program];
}
