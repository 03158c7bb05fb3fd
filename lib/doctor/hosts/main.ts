// What `gradlink doctor --hostfile` and `gradlink check -H` start on each host through a remote shell. It says what it is
// and where it listens, then does what it is told, a line of JSON each:
//
//   {"call": [...]}   calls the other hosts, and says what that gave
//   {"run": {...}}    runs a command of gradlink, and says how it ended and what it printed
//   {"stop": true}    ends that command
//
// Both sides say that they are alive. It ends with its standard input, or once nothing comes from there any more.
//
//   node doctor-host.js
import { hostname } from 'node:os';
import { createInterface } from 'node:readline';

import { readNetwork } from '../../network.js';
import { factsHere } from './facts.js';
import { startOwn, type Running, type Task } from './own-command.js';
import { callAll, listen, type Door } from './reach.js';
import { beatMs, silenceMs } from './remote.js';

interface Told {
  readonly alive?: true;
  readonly call?: readonly Door[];
  readonly run?: Task;
  readonly stop?: true;
}

const say = (what: object): void => void process.stdout.write(`${JSON.stringify(what)}\n`);

/** Ends this process and its command when the caller is gone. */
async function leave(running: Running | undefined): Promise<never> {
  running?.stop();
  await running?.ended;
  process.exit();
}

try {
  const network = readNetwork();
  const listener = await listen(network);
  const { port, token } = listener;
  const beat = setInterval(() => {
    say({ alive: true });
  }, beatMs);
  let running: Running | undefined;
  const silence = setTimeout(() => void leave(running), silenceMs);
  process.stdout.on('error', () => void leave(running));
  const facts = await factsHere(process.env);
  say({ facts, port, token, address: network.chosen?.address, name: hostname() });
  for await (const line of createInterface({ input: process.stdin })) {
    silence.refresh();
    const { call, run, stop } = JSON.parse(line) as Told;
    if (call !== undefined) {
      void callAll(call, network).then((reached) => {
        say({ reached });
      });
    }
    if (run !== undefined) {
      running = startOwn(run, process.env);
      void running.ended.then((ended) => {
        running = undefined;
        say({ ended });
      });
    }
    if (stop === true) running?.stop();
  }
  clearInterval(beat);
  clearTimeout(silence);
  listener.close();
  await leave(running);
} catch (error) {
  say({ error: (error as Error).message });
}
