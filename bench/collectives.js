#!/usr/bin/env node
// The same as `gradlink collectives`.
import { start } from './start.js';

await start('collectives');
