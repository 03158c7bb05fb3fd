// The only place that loads TensorFlow.js, an optional peer: if it is absent the error tells what to install.
import { createRequire } from 'node:module';

import type * as Core from '@tensorflow/tfjs-core';
import type * as Layers from '@tensorflow/tfjs-layers';

import { GradlinkError } from '../errors.js';
import { ownFile } from '../package-folder.js';

/** Works in every setting; includes the default backend. */
const packages =
  '@tensorflow/tfjs-core @tensorflow/tfjs-layers @tensorflow/tfjs-backend-wasm @tensorflow/tfjs-backend-cpu';

/** Whether the package itself is missing, rather than one of its dependencies. */
function isNotInstalled(error: unknown, name: string): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (
    (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') &&
    String(message).includes(`'${name}'`)
  );
}

const load = createRequire(ownFile());

export function isInstalled(name: string): boolean {
  try {
    return load.resolve(name) !== '';
  } catch (error) {
    return !isNotInstalled(error, name);
  }
}

/**
 * Loads a package of TensorFlow.js by require, because modules with top-level await cannot be required themselves.
 * Import gives the same instance: these packages are CommonJS in Node.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE, with the install command or the load error.
 */
export function loadPackage(name: string, install = name): unknown {
  try {
    return load(name);
  } catch (cause) {
    const why = isNotInstalled(cause, name)
      ? `it is not installed: npm install ${install}`
      : `it does not load: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw new GradlinkError('ERR_BACKEND_UNAVAILABLE', `gradlink/tfjs needs ${name}; ${why}`, {
      cause,
    });
  }
}

// Registers the gradients of operations, which core alone lacks in Node.
export const layers = loadPackage('@tensorflow/tfjs-layers', packages) as typeof Layers;

/** TensorFlow.js. */
export const tf = loadPackage('@tensorflow/tfjs-core', packages) as typeof Core;
