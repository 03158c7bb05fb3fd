#!/usr/bin/env node
// The same as `gradlink p2p`.
import { start } from './start.js';

await start('p2p');
