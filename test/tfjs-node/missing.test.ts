// Stands for the tests on tfjs-node where they cannot run.
import { test } from 'vitest';

import { missingTfjsNode } from '../setup/tfjs-node.js';

test('training on tfjs-node and tfjs-node-gpu', (context) => {
  context.skip(missingTfjsNode ?? 'it can be had');
});
