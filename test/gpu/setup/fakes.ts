// Where the stand-ins are and which environment makes gradlink load them.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');

export const fakesFolder = join(root, 'build/cmake/fakes');

/** Of two runs at once one builds after the other. */
export function buildFakes(): void {
  mkdirSync(join(root, 'build'), { recursive: true });
  const build = [process.execPath, join(root, 'scripts/fakes.mjs')];
  execFileSync('flock', [join(root, 'build/fakes.lock'), ...build], { stdio: 'pipe' });
}

/** Of one run of vitest: a file for each test file, with what the fakes still held when its processes ended. */
export const leaksFolder = (vitestPid: number): string =>
  join(root, 'build/test-results/gpu-leaks', String(vitestPid));

/** Whether the GPU tests run on the machine's own GPUs (`npm run test:gpu`). */
export const onRealGpus = process.env.GRADLINK_GPU_TESTS === 'real';

/** The machine that tests of whole reports know, whatever the others run on. */
export const fourGpus: Readonly<Record<string, string>> = {
  GRADLINK_FAKE_GPUS: '4',
  GRADLINK_FAKE_NVLINK: 'mesh',
};

/** What a process loads the stand-ins with; nothing on real GPUs. */
export const fakesEnvironment: Readonly<Record<string, string>> = onRealGpus
  ? {}
  : {
      GRADLINK_CUDA_LIBRARY: join(fakesFolder, 'libcuda.so.1'),
      GRADLINK_NVML_LIBRARY: join(fakesFolder, 'libnvidia-ml.so.1'),
      GRADLINK_NCCL_LIBRARY: join(fakesFolder, 'libnccl.so.2'),
    };
