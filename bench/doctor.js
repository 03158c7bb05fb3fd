#!/usr/bin/env node
// The same as `gradlink doctor`.
import { start } from './start.js';

await start('doctor');
