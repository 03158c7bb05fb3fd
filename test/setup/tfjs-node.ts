// The projects `tfjs-node` and `tfjs-node-gpu`: what trains runs on TensorFlow's own library, through the packages that
// scripts/tfjs-node.sh has made in build/tfjs-node.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '../..');
export const tfjsNodeFolder = join(root, 'build/tfjs-node');

/** The packages by the backends' short names. */
const packages = { node: '@tensorflow/tfjs-node', 'node-gpu': '@tensorflow/tfjs-node-gpu' } as const;

/** The first Node that lacks what version 4.22 of the packages calls. */
const tooNew = 23;

function reason(): string | undefined {
  if (Number(process.versions.node.split('.')[0]) >= tooNew) {
    return `tfjs-node 4.22 works up to Node ${tooNew - 1}; this is Node ${process.versions.node}`;
  }
  const file = join(tfjsNodeFolder, 'missing');
  if (existsSync(file)) return readFileSync(file, 'utf8').trim();
  if (existsSync(join(tfjsNodeFolder, 'version'))) return undefined;
  return 'nothing in build/tfjs-node: run "bash scripts/tfjs-node.sh" first';
}

/** Why these projects cannot run here; undefined where they can. */
export const missingTfjsNode = reason();

/** For vite: where the packages are. */
export const tfjsNodeAliases: Readonly<Record<string, string>> = Object.fromEntries(
  Object.values(packages).map((name) => [
    name,
    join(tfjsNodeFolder, 'node_modules', name, 'dist/index.js'),
  ]),
);

/**
 * What a test file is told, and, through its processes' environment, every program that it starts.
 *
 * @param backend the one that training tests use
 */
export function tfjsNodeEnvironment(backend: keyof typeof packages): Record<string, string> {
  const hooks = pathToFileURL(join(import.meta.dirname, 'tfjs-node-register.mjs')).href;
  return {
    GRADLINK_TEST_BACKEND: backend,
    GRADLINK_TEST_TFJS_NODE: tfjsNodeFolder,
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${hooks}`.trim(),
    // Its greeting and its warnings are not what tests of standard error are about.
    TF_CPP_MIN_LOG_LEVEL: '3',
    TF_ENABLE_ONEDNN_OPTS: '0',
  };
}
