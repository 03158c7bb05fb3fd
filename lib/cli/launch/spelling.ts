// Options of other launchers that mean one of ours, in the words ours understands.
import type { Command } from 'commander';

/** bfrun's and horovodrun's. */
const workers: readonly string[] = ['-np', '--num-proc'];

/**
 * `launch -np 4` as `launch -n 4`: `-np` would be read as `-n` with the value `p`. What follows the command to launch
 * stays as it is.
 */
export function ownSpelling(argv: readonly string[], program: Command): readonly string[] {
  const launch = program.commands.find((command) => command.name() === 'launch');
  if (launch === undefined || argv[0] !== 'launch') return argv;
  const own = [...argv];
  for (let i = 1; i < own.length && own[i]!.startsWith('-') && own[i] !== '--'; ++i) {
    if (workers.includes(own[i]!)) own[i] = '-n';
    const option = launch.options.find(({ short, long }) => own[i] === short || own[i] === long);
    if (option?.required === true) ++i;
  }
  return own;
}
