// Which backend of TensorFlow.js computes.
import { argumentError } from '../errors.js';
import { registerGradientKernels } from './kernels/register.js';
import { backendNames, type BackendName } from './names.js';
import { importPackage, isNotInstalled, tf } from './tfjs.js';

/** By their short names. */
const backends = {
  'node-gpu': { package: '@tensorflow/tfjs-node-gpu', engine: 'tensorflow' },
  node: { package: '@tensorflow/tfjs-node', engine: 'tensorflow' },
  wasm: { package: '@tensorflow/tfjs-backend-wasm', engine: 'wasm' },
  cpu: { package: '@tensorflow/tfjs-backend-cpu', engine: 'cpu' },
} as const satisfies Record<BackendName, object>;

/** A backend that is ready. */
export interface Backend {
  readonly name: BackendName;
  /** As `tf.getBackend()` has it. */
  readonly engine: string;
  /** The version of TensorFlow.js. */
  readonly version: string;
}

/**
 * Makes a backend of TensorFlow.js ready and the one that is used. On wasm, which lacks some gradients, these are added:
 * see {@link registerGradientKernels}.
 *
 * @param name - when absent, the first that is installed of node-gpu, node, wasm and cpu.
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE where it is not installed or does not start.
 */
export async function useBackend(name?: BackendName): Promise<Backend> {
  if (
    name !== undefined &&
    (typeof (name as unknown) !== 'string' || !Object.hasOwn(backends, name))
  ) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'name', `one of ${backendNames.join(', ')}`, name);
  }
  const chosen = name ?? (await firstInstalled());
  const { package: needed, engine } = backends[chosen];
  await importPackage(needed);
  if (!(await tf.setBackend(engine))) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'name', 'a backend that starts here', chosen);
  }
  await tf.ready();
  if (chosen === 'wasm') registerGradientKernels('wasm');
  return { name: chosen, engine, version: tf.version_core };
}

async function firstInstalled(): Promise<BackendName> {
  for (const name of backendNames) {
    const { package: needed } = backends[name];
    try {
      await import(needed);
      return name;
    } catch (error) {
      // One that is there but does not load is told of: whoever installed it wants it used.
      if (!isNotInstalled(error, needed)) return name;
    }
  }
  return 'wasm';
}
