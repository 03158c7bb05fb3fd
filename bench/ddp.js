#!/usr/bin/env node
await (await import('./start.js')).start('ddp');
