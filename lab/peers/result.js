// What a run leaves on disk: written anew whenever there is more, so that a run that is ended keeps what it had.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';

export const schema = 'gradlink-peers/2';

/** Whole or not at all: whoever reads it meanwhile gets the state before. */
export function writeRun(file, run) {
  const partial = `${file}.partial`;
  writeFileSync(partial, `${JSON.stringify(run, null, 1)}\n`);
  renameSync(partial, file);
}

export function readRun(file) {
  let run;
  try {
    run = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`expected a run of lab/peers/run.js in ${file}, got: ${error.message}`, {
      cause: error,
    });
  }
  if (run?.schema !== schema) {
    throw new Error(
      `expected the schema ${schema} in ${file}, got ${run?.schema}; run lab/peers/run.js --output again`,
    );
  }
  return run;
}
