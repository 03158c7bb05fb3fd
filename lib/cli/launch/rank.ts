// What mpirun and srun start for `gradlink launch`: the keeper of one process. A program of its own that loads neither
// the commands nor the addon, for there is one beside every process of the job.
//
//   node launch-rank.js COMMAND ARGUMENT...
import type { Command } from '../../launch/job.js';
import { keep } from '../../launch/keeper.js';

try {
  const [program, ...rest] = process.argv.slice(2);
  if (program === undefined) throw new Error('expected a command');
  const command: Command = [program, ...rest];
  process.exitCode = await keep(command, process.env, process);
} catch (error) {
  process.stderr.write(`gradlink launch: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
