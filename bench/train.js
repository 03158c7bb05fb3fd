#!/usr/bin/env node
// The same as `gradlink train`.
import { start } from './start.js';

await start('train');
