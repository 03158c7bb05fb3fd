#!/usr/bin/env node
// The same as `gradlink ddp`.
import { start } from './start.js';

await start('ddp');
