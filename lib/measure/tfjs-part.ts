// Loads code that needs TensorFlow.js on request, because it imports that package, which is not in a program's bundle
// (scripts/bundle.mjs keeps it out).
import { GradlinkError } from '../errors.js';
import { packageFolder } from '../package-folder.js';

/**
 * Loads a module that imports TensorFlow.js.
 *
 * @throws GradlinkError ERR_UNSUPPORTED inside a bundle, ERR_BACKEND_UNAVAILABLE if TensorFlow.js is missing
 */
export function tfjsPart<Part>(load: () => Promise<Part>): Promise<Part> {
  if (packageFolder() !== undefined) return load();
  const advice = 'leave gradlink out of the bundle, with esbuild --external:gradlink';
  throw new GradlinkError('ERR_UNSUPPORTED', `models cannot train inside a bundle; ${advice}`, {
    usable: true,
  });
}
