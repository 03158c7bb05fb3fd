// What the contenders share: files beside this one, a folder for what is compiled, and programs that were built before.
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = (file) => fileURLToPath(new URL(file, import.meta.url));

/** Gone when the process exits. */
export const work = mkdtempSync(join(tmpdir(), 'gradlink-peers-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

export const list = (values) => values.join(',');

/** Why the program that `script` built cannot be run; undefined where it can. */
export function builtWaived(variable, script) {
  const program = process.env[variable] ?? '';
  if (program === '') return `${variable} names no program (lab/peers/${script})`;
  try {
    accessSync(program, constants.X_OK);
    return undefined;
  } catch (error) {
    return `${variable}: ${error.message}`;
  }
}
