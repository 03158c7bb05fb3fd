// What training tests compute with: of the projects `tfjs-node` and `tfjs-node-gpu` these packages, else what is installed.
import type { BackendName } from '../../lib/train/names.js';

/** Undefined in the other projects. */
export const testBackend = process.env.GRADLINK_TEST_BACKEND as BackendName | undefined;

/** For `gradlink train` and `ddp`; a GPU's package computes on the CPU where there is no GPU. */
export const backendArguments: readonly string[] =
  testBackend === undefined ? [] : ['--backend', testBackend, '--allow-cpu'];
