// Finds @tensorflow/tfjs-node and tfjs-node-gpu in the folder of GRADLINK_TEST_TFJS_NODE: in the checkout's own
// node_modules they would be the default backend of every test.
import { pathToFileURL } from 'node:url';

const parent = pathToFileURL(`${process.env.GRADLINK_TEST_TFJS_NODE}/package.json`).href;

export function resolve(specifier, context, next) {
  const ours = /^@tensorflow\/tfjs-node(-gpu)?$/.test(specifier);
  return next(specifier, ours ? { ...context, parentURL: parent } : context);
}
