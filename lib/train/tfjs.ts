// The one place that loads TensorFlow.js, which is an optional peer: its absence is told with what to install.
import { createRequire } from 'node:module';

import type * as Core from '@tensorflow/tfjs-core';
import type * as Layers from '@tensorflow/tfjs-layers';

import { GradlinkError } from '../errors.js';
import { ownFile } from '../package-folder.js';

/** What trains in every setting; the default backend is part of it. */
const packages =
  '@tensorflow/tfjs-core @tensorflow/tfjs-layers @tensorflow/tfjs-backend-wasm @tensorflow/tfjs-backend-cpu';

/** Whether loading failed because the package itself, not one of those it needs, is absent. */
function isNotInstalled(error: unknown, name: string): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (
    (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') &&
    String(message).includes(`'${name}'`)
  );
}

const load = createRequire(ownFile());

/** Whether {@link loadPackage} finds it. */
export function isInstalled(name: string): boolean {
  try {
    return load.resolve(name) !== '';
  } catch (error) {
    return !isNotInstalled(error, name);
  }
}

/**
 * Loads a package of TensorFlow.js. Required, not imported: what waits when it is loaded cannot be required itself. Both
 * give the same instance, for these packages are CommonJS in Node.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE, with the command that installs it, or with the reason why it does not
 *   load.
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

// Tells TensorFlow.js the gradients of its operations, which the core alone does not know in Node.
export const layers = loadPackage('@tensorflow/tfjs-layers', packages) as typeof Layers;

/** TensorFlow.js. */
export const tf = loadPackage('@tensorflow/tfjs-core', packages) as typeof Core;
