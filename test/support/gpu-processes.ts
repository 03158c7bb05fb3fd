// Processes with GPUs, which must leave nothing behind.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';

import { onRealGpus } from '../gpu/setup/fakes.js';
import { Scripts } from './processes.js';

let files = 0;

/** Scripts whose processes say, on the fakes, what each left at its end. */
export class GpuScripts extends Scripts {
  readonly #leaks = join(tmpdir(), `gradlink-leaks-${process.pid}-${files++}`);

  /** What to run a script with. */
  env(more: Record<string, string> = {}): Record<string, string> {
    return { GRADLINK_FAKE_LEAKS: this.#leaks, ...more };
  }

  /** On the fakes: somebody has written the file, and there was nothing to write. */
  expectNothingLeft(): void {
    if (onRealGpus) return;
    expect(existsSync(this.#leaks)).toBe(true);
    expect(readFileSync(this.#leaks, 'utf8')).toBe('');
  }

  override async remove(): Promise<void> {
    await super.remove();
    rmSync(this.#leaks, { force: true });
  }
}

/** In a script: a communicator of all GPUs, and buffers of twos that it has summed once. */
export const aGroup = `
  const group = await Communicator.nccl();
  const buffers = group.gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', 1000));
  await Promise.all(buffers.map((one) => one.fill(2)));
  await group.allReduce(buffers);
`;
