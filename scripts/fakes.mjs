#!/usr/bin/env node
// Builds the stand-ins for the CUDA driver, NVML and NCCL (test/fakes) into build/fakes/fakes, doing only what is stale.
// Prints the folder.
import { join } from 'node:path';
import { availableParallelism } from 'node:os';
import { cmake, dropForeignCache, missingTools, root } from './build.mjs';

const folder = join(root, 'build', 'fakes');

try {
  const problem = missingTools();
  if (problem) throw new Error(problem);
  dropForeignCache(folder);
  cmake([
    ...['-S', join(root, 'native'), '-B', folder],
    ...['-DCMAKE_BUILD_TYPE=Release', '-DGRADLINK_ADDON=OFF', '-DGRADLINK_FAKES=ON', '-Wno-dev'],
  ]);
  const jobs = String(availableParallelism());
  cmake(['--build', folder, '--target', 'fakes', '--parallel', jobs]);
  console.log(join(folder, 'fakes'));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
