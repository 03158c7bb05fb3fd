// What a file or folder is called until it is whole, and the removal of what killed processes left under such names.
import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';

/** Bytes, so that the whole stays below the 255 bytes of a name. */
const keptOfName = 80;
const ending = '.partial';

/** Beside `path`, up to the process that writes; native/kvstore/base/whole_file.cc names its own alike. */
function prefixOf(path: string): string {
  const name = Buffer.from(basename(path)).subarray(0, keptOfName).toString();
  return `.${name}.${hostname().slice(0, 64)}.`;
}

/** A name beside `path` that nobody else takes. */
export function partialName(path: string): string {
  const own = `${process.pid}.${randomBytes(4).toString('hex')}`;
  return join(dirname(path), `${prefixOf(path)}${own}${ending}`);
}

/** Removes what processes of this host that are no more left beside `path` while they wrote it. */
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
    // A folder may be written to and not read.
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
