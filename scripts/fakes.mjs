#!/usr/bin/env node
// Builds the stand-ins for the CUDA driver, NVML and NCCL (test/fakes) into build/cmake/fakes, doing only what is stale.
// Prints the folder.
import { buildFakes } from './build.mjs';

try {
  console.log(buildFakes());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
