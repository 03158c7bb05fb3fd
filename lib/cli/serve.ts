// `gradlink serve`: one server of a distributed store. `gradlink launch -s` starts it.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { exitCodes } from './io.js';
import { addTable } from './parse.js';
import { text, whole } from '../options/kinds.js';
import { optionTable, type ReadOf } from '../options/table.js';
import type { Register } from './register.js';
import { UsageError } from './usage-error.js';
import { notServer } from '../kvstore/role.js';
import { serveJob } from '../kvstore/serve.js';
import type { ServeOptions } from '../kvstore/serve.js';

const table = optionTable({
  threads: {
    flag: '--threads <count>',
    help: 'threads that merge what the workers push (default: one a core)',
    kind: whole({ min: 1, max: 1024 }),
  },
  module: {
    flag: '--module <file>',
    help: 'a module that exports updater or onCommand, as serveJob takes them',
    kind: text(),
  },
});

const moduleVariable = 'GRADLINK_SERVER_MODULE';

const help = `
Started by gradlink launch -s, which tells each server its place in the environment (GRADLINK_SERVER_RANK,
GRADLINK_NUM_WORKERS, GRADLINK_NUM_SERVERS, GRADLINK_JOB), or by hand, for workers over TCP, with the same variables,
GRADLINK_TRANSPORT=tcp, and the workers' MASTER_ADDR and MASTER_PORT. Serves the distributed stores of the job one
after another, as the workers make them, until SIGTERM or SIGINT, or, over MPI and TCP, until the workers have ended.
Prints the texts that workers send with sendCommandToServers.

With --module FILE, or ${moduleVariable}=FILE, a server uses the functions updater and onCommand that the JavaScript module
FILE exports: docs/distributed.md describes them.

Exit status: 0 in good order, 1 when a store failed; the message names the process that was lost.

Examples:
  $ gradlink launch -n 2 -s 2 node app.js            starts two of them beside two workers
  $ gradlink launch -n 2 -s 2 --env-server ${moduleVariable}=./updater.mjs node app.js
  $ gradlink serve --threads 4                       inside such a job`;

const endingSignals = ['SIGINT', 'SIGTERM'] as const;

/** What the user's module adds to the server. */
async function ownFunctions(
  file: string | undefined,
): Promise<Pick<ServeOptions, 'updater' | 'onCommand'>> {
  if (file === undefined || file === '') return {};
  try {
    const { updater, onCommand } = (await import(
      pathToFileURL(resolve(file)).href
    )) as ServeOptions;
    return {
      ...(updater === undefined ? {} : { updater }),
      ...(onCommand === undefined ? {} : { onCommand }),
    };
  } catch (error) {
    throw new UsageError(
      `serve: expected a JavaScript module that loads, and ${file} does not: ${String(error)}.`,
    );
  }
}

export const registerServe: Register = (program, io, done) => {
  const command = program
    .command('serve')
    .description('serve a share of the distributed store of a job; gradlink launch -s starts it');
  addTable(command, table)
    .addHelpText('after', help)
    .action(async ({ threads, module }: ReadOf<typeof table>) => {
      const reason = notServer(io.env);
      if (reason !== undefined) throw new UsageError(`serve: ${reason}.`);
      const own = await ownFunctions(module ?? io.env[moduleVariable]);
      const stop = new AbortController();
      const onSignal = (): void => {
        stop.abort();
      };
      for (const signal of endingSignals) io.on(signal, onSignal);
      try {
        await serveJob({
          signal: stop.signal,
          ...(threads === undefined ? {} : { threads }),
          onCommand: (command, worker, head) => {
            const number = head === 0 ? '' : `${String(head)} `;
            io.stdout.write(`worker ${String(worker)}: ${number}${command}\n`);
          },
          ...own,
        });
        done(exitCodes.ok);
      } finally {
        for (const signal of endingSignals) io.off(signal, onSignal);
      }
    });
};
