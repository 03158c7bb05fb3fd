#!/usr/bin/env node
// The package's command: gradlink measure, collectives, p2p, models, launch.
import { start } from './start.js';

await start();
