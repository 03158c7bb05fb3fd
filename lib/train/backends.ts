// Selects the TensorFlow.js backend.
import util from 'node:util';

import { argumentError, GradlinkError } from '../errors.js';
import { visibleVariable, type GpuShare } from '../launch/gpus.js';
import { flag, oneOf, optionNames, optionsObject } from '../checks.js';
import { registerGradientKernels } from './kernels/register.js';
import { backendNames, type BackendName } from './names.js';
import { takeOwnGpu } from './own-gpu.js';
import { isInstalled, loadPackage, tf } from './tfjs.js';

const backends = {
  'node-gpu': { package: '@tensorflow/tfjs-node-gpu', engine: 'tensorflow' },
  node: { package: '@tensorflow/tfjs-node', engine: 'tensorflow' },
  wasm: { package: '@tensorflow/tfjs-backend-wasm', engine: 'wasm' },
  cpu: { package: '@tensorflow/tfjs-backend-cpu', engine: 'cpu' },
} as const satisfies Record<BackendName, object>;

/** A backend in use. */
export interface Backend {
  /** Its name for `--backend`. */
  readonly name: BackendName;
  /** Its name in `tf.getBackend()`. */
  readonly engine: string;
  /** TensorFlow.js's version. */
  readonly version: string;
  /** The device: with `'node-gpu'` a GPU only if TensorFlow has found one. */
  readonly device: 'GPU' | 'CPU';
  /** The GPU assigned to this rank of a job; absent outside a job and without GPUs. */
  readonly gpu?: GpuShare;
}

/** Options of {@link useBackend}. */
export interface BackendOptions {
  /** Whether `'node-gpu'` may compute on the CPU if TensorFlow finds no GPU; false when absent. */
  readonly allowCpu?: boolean | undefined;
}

const backendOptions = optionNames<BackendOptions>({ allowCpu: true });

/**
 * Initialises and selects a TensorFlow.js backend. Adds the gradients that wasm lacks: see
 * {@link registerGradientKernels}. In a job each rank's `'node-gpu'` sees one GPU, chosen by local rank, and allocates
 * memory as needed: call this before other uses of GPUs.
 *
 * @param name - when absent, the first installed of node-gpu, node, wasm and cpu.
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE if it is not installed or does not start, and if `'node-gpu'` is named
 *   and finds no GPU.
 */
export async function useBackend(name?: BackendName, options?: BackendOptions): Promise<Backend> {
  if (name !== undefined) oneOf(name, 'name', backendNames);
  const given = optionsObject(options, backendOptions, 'useBackend()');
  // Without a name a GPU was not requested.
  const allowCpu = flag(given.allowCpu, 'allowCpu', false) || name === undefined;
  const chosen = name ?? firstInstalled();
  const { package: needed, engine } = backends[chosen];
  const gpu = chosen === 'node-gpu' ? takeOwnGpu() : undefined;
  loadPackage(needed);
  if (!(await tf.setBackend(engine))) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'name', 'a backend that starts here', chosen);
  }
  await tf.ready();
  if (chosen === 'wasm') registerGradientKernels('wasm');
  if (engine === 'tensorflow') assertComputes(needed);
  const device = usesGpu() ? 'GPU' : 'CPU';
  if (chosen === 'node-gpu' && device === 'CPU' && !allowCpu) throw withoutGpu(needed);
  const own = device === 'GPU' && gpu !== undefined ? { gpu } : {};
  return { name: chosen, engine, version: tf.version_core, device, ...own };
}

/** The package alone is no proof: without a GPU or the right CUDA, TensorFlow silently uses the CPU. */
function usesGpu(): boolean {
  return (tf.backend() as { isUsingGpuDevice?: unknown }).isUsingGpuDevice === true;
}

function withoutGpu(name: string): GradlinkError {
  const visible = process.env[visibleVariable];
  const seen = visible === undefined ? '' : ` (${visibleVariable} is '${visible}')`;
  return new GradlinkError(
    'ERR_BACKEND_UNAVAILABLE',
    `expected a GPU for ${name}, but TensorFlow finds none${seen} and would compute on the CPU: gradlink doctor says what ` +
      'is missing; to go on without one: allowCpu: true, or --allow-cpu on the command line',
  );
}

/**
 * Runs one operation, to report a broken package early. Node 23 removed a function that version 4.22 calls in every
 * operation, though it still loads.
 */
function assertComputes(name: string): void {
  try {
    tf.tidy(() => tf.neg(tf.scalar(1)).dataSync());
  } catch (cause) {
    const { isNullOrUndefined } = util as { isNullOrUndefined?: unknown };
    const why =
      typeof isNullOrUndefined === 'function'
        ? `it does not compute: ${cause instanceof Error ? cause.message : String(cause)}`
        : `its operations call util.isNullOrUndefined, which Node ${process.versions.node} no longer has: use Node 20 or 22, ` +
          'or another backend (wasm, cpu)';
    throw new GradlinkError('ERR_BACKEND_UNAVAILABLE', `gradlink/tfjs needs ${name}; ${why}`, {
      cause,
    });
  }
}

/** Reports an installed backend that does not load: its user wants it. */
function firstInstalled(): BackendName {
  return backendNames.find((name) => isInstalled(backends[name].package)) ?? 'wasm';
}
