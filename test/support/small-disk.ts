// A file system of a few pages, to fill.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

function mount(folder: string, bytes: number): string | undefined {
  const { status, stderr, error } = spawnSync(
    'mount',
    ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder],
    { encoding: 'utf8' },
  );
  return status === 0 ? undefined : (error?.message ?? stderr.trim());
}

/** Why none can be made; undefined where one can. */
export const noSmallDisk = ((): string | undefined => {
  const folder = mkdtempSync(join(tmpdir(), 'gradlink-disk-'));
  try {
    const why = mount(folder, 65_536);
    if (why === undefined) spawnSync('umount', [folder]);
    return why;
  } finally {
    rmSync(folder, { recursive: true });
  }
})();

export class SmallDisk {
  readonly folder = mkdtempSync(join(tmpdir(), 'gradlink-disk-'));

  constructor(bytes: number) {
    const why = mount(this.folder, bytes);
    if (why !== undefined) throw new Error(why);
  }

  /** Leaves room for nothing but `free` bytes. */
  fill(free: number): void {
    const file = openSync(join(this.folder, 'ballast'), 'w');
    const page = Buffer.alloc(4096, 1);
    try {
      for (;;) writeSync(file, page);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
    this.empty(free);
  }

  /** Makes room for `bytes` more. */
  empty(bytes: number): void {
    const ballast = join(this.folder, 'ballast');
    const { status } = spawnSync('truncate', ['-s', `-${bytes}`, ballast]);
    if (status !== 0) throw new Error(`${ballast} cannot be made smaller`);
  }

  remove(): void {
    // Lazily: a test that failed may still hold a file open.
    spawnSync('umount', ['-l', this.folder]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
