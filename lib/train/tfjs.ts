// The one place that loads TensorFlow.js, which is an optional peer: its absence is told with what to install.
import type * as Core from '@tensorflow/tfjs-core';
import type * as Layers from '@tensorflow/tfjs-layers';

import { GradlinkError } from '../errors.js';

/** What trains in every setting; the default backend is part of it. */
const packages =
  '@tensorflow/tfjs-core @tensorflow/tfjs-layers @tensorflow/tfjs-backend-wasm @tensorflow/tfjs-backend-cpu';

/** Whether an import failed because the package itself, not one of those it needs, is absent. */
export function isNotInstalled(error: unknown, name: string): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (
    (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') &&
    String(message).includes(`'${name}'`)
  );
}

/**
 * Imports a package of TensorFlow.js.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE, with the command that installs it, or with the reason why it does not
 *   load.
 */
export async function importPackage(name: string, install = name): Promise<unknown> {
  try {
    return await import(name);
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
export const layers = (await importPackage('@tensorflow/tfjs-layers', packages)) as typeof Layers;

/** TensorFlow.js. Awaited here once, so that everything behind can be synchronous. */
export const tf = (await importPackage('@tensorflow/tfjs-core', packages)) as typeof Core;
