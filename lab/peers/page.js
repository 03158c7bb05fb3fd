#!/usr/bin/env node
// The tables of runs that run.js has written: of one machine, or of several side by side.
//
//   node lab/peers/page.js [--markdown] RUN.json [OTHER.json ...]
import { parseArgs } from 'node:util';
import { readRun } from './result.js';
import { tablesOf } from './tables.js';

const usage = `usage: node lab/peers/page.js [--markdown] RUN.json [OTHER.json ...]

  RUN.json    what lab/peers/run.js --output wrote; several are shown side by side
  --markdown  print Markdown

A target is reached where it holds on every machine. Exit status: 0, or 2 for bad usage and files that are no such runs.`;

try {
  const { values, positionals } = parseArgs({
    options: {
      markdown: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
    allowPositionals: true,
  });
  if (values.help) {
    console.log(usage);
  } else {
    if (positionals.length === 0) throw new Error('expected the file of a run, got none');
    console.log(tablesOf(positionals.map(readRun), values.markdown ? 'markdown' : 'text'));
  }
} catch (error) {
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
