#!/usr/bin/env node
// The same as `gradlink measure`.
import { start } from './start.js';

await start('measure');
