// Which backend of TensorFlow.js computes.
import util from 'node:util';

import { argumentError, GradlinkError } from '../errors.js';
import { visibleVariable, type GpuShare } from '../launch/gpus.js';
import { flag, oneOf, optionNames, optionsObject } from '../checks.js';
import { registerGradientKernels } from './kernels/register.js';
import { backendNames, type BackendName } from './names.js';
import { takeOwnGpu } from './own-gpu.js';
import { isInstalled, loadPackage, tf } from './tfjs.js';

/** By their short names. */
const backends = {
  'node-gpu': { package: '@tensorflow/tfjs-node-gpu', engine: 'tensorflow' },
  node: { package: '@tensorflow/tfjs-node', engine: 'tensorflow' },
  wasm: { package: '@tensorflow/tfjs-backend-wasm', engine: 'wasm' },
  cpu: { package: '@tensorflow/tfjs-backend-cpu', engine: 'cpu' },
} as const satisfies Record<BackendName, object>;

/** A backend that is ready. */
export interface Backend {
  /** As `--backend` takes it. */
  readonly name: BackendName;
  /** As `tf.getBackend()` has it. */
  readonly engine: string;
  /** The version of TensorFlow.js. */
  readonly version: string;
  /** What computes: with `'node-gpu'` a GPU only where TensorFlow has found one. */
  readonly device: 'GPU' | 'CPU';
  /** The GPU that this rank of a job was given; absent outside a job and without GPUs. */
  readonly gpu?: GpuShare;
}

/** Options of {@link useBackend}. */
export interface BackendOptions {
  /** Whether `'node-gpu'` may compute on the CPU where TensorFlow finds no GPU; false when absent. */
  readonly allowCpu?: boolean | undefined;
}

const backendOptions = optionNames<BackendOptions>({ allowCpu: true });

/**
 * Makes a backend of TensorFlow.js ready and the one that is used. On wasm, which lacks some gradients, these are added:
 * see {@link registerGradientKernels}. In a job `'node-gpu'` sees one GPU in each rank, by its place on its host, and takes
 * memory as it needs it: call this before anything else of GPUs.
 *
 * @param name - when absent, the first that is installed of node-gpu, node, wasm and cpu.
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE where it is not installed or does not start, and where `'node-gpu'` is
 *   asked for by name and finds no GPU.
 */
export async function useBackend(name?: BackendName, options?: BackendOptions): Promise<Backend> {
  if (name !== undefined) oneOf(name, 'name', backendNames);
  const given = optionsObject(options, backendOptions, 'useBackend()');
  // Without a name nobody has asked for a GPU.
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

/** The package's name is no proof: without a GPU, or without the CUDA that it needs, TensorFlow takes the CPU silently. */
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
 * One operation, so that a package that cannot compute is told of here. Node 23 took away what version 4.22 calls in
 * every operation; it loads there all the same.
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

/** One that is there but does not load is told of: whoever installed it wants it used. */
function firstInstalled(): BackendName {
  return backendNames.find((name) => isInstalled(backends[name].package)) ?? 'wasm';
}
