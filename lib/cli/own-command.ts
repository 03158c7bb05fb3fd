// `gradlink launch … gradlink COMMAND`: this program again.
import { packageFile } from '../package-folder.js';

type CommandLine = readonly [program: string, ...args: string[]];

/**
 * A command to start, with `gradlink` as the program of this package: in a checkout none of that name is in PATH, and
 * elsewhere another version may be.
 */
export function ownCommand([program, ...args]: CommandLine): [string, ...string[]] {
  if (program !== 'gradlink') return [program, ...args];
  return [process.execPath, packageFile('bench/gradlink.js'), ...args];
}
