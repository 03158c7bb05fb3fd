#!/usr/bin/env node
// The same as `gradlink topo`.
import { start } from './start.js';

await start('topo');
