#!/usr/bin/env node
// The package's command: gradlink measure, collectives, models, launch.
import { start } from './start.js';

await start();
