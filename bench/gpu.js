#!/usr/bin/env node
// `npm run bench:gpu`: what the GPUs of this machine reach of their limits. The logic is lib/measure/gpu-targets.
import { start } from './start.js';

await start('gpu', 'internal.js');
