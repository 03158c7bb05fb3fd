#!/usr/bin/env node
// Builds the stand-ins for the CUDA driver, NVML and NCCL (test/fakes) into build/cmake/fakes, doing only what is stale.
// Prints the folder.
import { join } from 'node:path';
import { build } from './native.mjs';

try {
  console.log(join(build({ fakes: true }), 'fakes'));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
