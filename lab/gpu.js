#!/usr/bin/env node
// `npm run bench:gpu`: what the GPUs of this machine reach of their limits (lab/gpu/).
import { start } from '../bench/start.js';

await start('gpu', 'internal.js');
