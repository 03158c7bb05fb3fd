#!/usr/bin/env node
// The same as `gradlink report`.
import { start } from './start.js';

await start('report');
