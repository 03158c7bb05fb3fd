// The projects `tfjs-node` and `tfjs-node-gpu`: what trains runs on TensorFlow's own library, through the packages that
// scripts/tfjs-node.sh has made in build/tfjs-node.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
export const tfjsNodeFolder = join(root, 'build/tfjs-node');

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

/**
 * What a test file is told, and, through its processes' environment, every program that it starts.
 *
 * @param backend the one that training tests use
 */
export function tfjsNodeEnvironment(backend: 'node' | 'node-gpu'): Record<string, string> {
  return {
    GRADLINK_TEST_BACKEND: backend,
    // In the checkout's own node_modules they would be the default backend of every test.
    NODE_PATH: join(tfjsNodeFolder, 'node_modules'),
    // Its greeting and its warnings are not what tests of standard error are about.
    TF_CPP_MIN_LOG_LEVEL: '3',
    TF_ENABLE_ONEDNN_OPTS: '0',
  };
}
