// Names of files and folders in progress, and their removal after killed processes.
import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';

/** In bytes, so that the whole name stays below 255 bytes. */
const keptOfName = 80;
const ending = '.partial';

/** Beside `path`, up to the process ID; native/kvstore/base/whole_file.cc uses the same names. */
function prefixOf(path: string): string {
  const name = Buffer.from(basename(path)).subarray(0, keptOfName).toString();
  return `.${name}.${hostname().slice(0, 64)}.`;
}

/** A unique name beside `path`. */
export function partialName(path: string): string {
  const own = `${process.pid}.${randomBytes(4).toString('hex')}`;
  return join(dirname(path), `${prefixOf(path)}${own}${ending}`);
}

/** Removes partial files beside `path` left by ended processes of this host. */
export function removePartials(path: string): void {
  const prefix = prefixOf(path);
  const folder = dirname(path);
  for (const name of namesIn(folder)) {
    if (!name.startsWith(prefix) || !name.endsWith(ending)) continue;
    const [, writer] = /^(\d+)\./.exec(name.slice(prefix.length)) ?? [];
    if (writer === undefined || isAlive(Number(writer))) continue;
    rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // The folder may be writable but not readable.
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
