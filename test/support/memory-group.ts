// A container's limit of memory, made here as a control group of the kernel's.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import type { TestContext } from 'vitest';

/** Below this process's own group, whichever version the machine has. */
export class MemoryGroup {
  private constructor(private readonly folder: string) {}

  /** Skips the test where none can be made. */
  static make(context: TestContext, limit: number): MemoryGroup {
    const own = readFileSync('/proc/self/cgroup', 'utf8')
      .split('\n')
      .map((line) => line.split(':'))
      .map(([, controllers = '', path = '']) => ({ controllers: controllers.split(','), path }));
    const first = own.find(({ controllers }) => controllers.includes('memory'));
    const second = own.find(({ controllers }) => controllers[0] === '');
    const parent = first
      ? join('/sys/fs/cgroup/memory', first.path)
      : join('/sys/fs/cgroup', second?.path ?? '');
    const made = join(parent, `gradlink-test-${String(process.pid)}`);
    try {
      mkdirSync(made);
      writeFileSync(join(made, first ? 'memory.limit_in_bytes' : 'memory.max'), String(limit));
    } catch (error) {
      context.skip(`no control group with a limit can be made here: ${String(error)}`);
    }
    return new MemoryGroup(made);
  }

  /** What starts a command in it. */
  get launcher(): readonly string[] {
    return ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', this.folder];
  }

  async remove(): Promise<void> {
    // The kernel lets go of a group a moment after its last process has ended.
    while (existsSync(this.folder)) {
      try {
        rmdirSync(this.folder);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
        await sleep(1);
      }
    }
  }
}
