// What `gradlink doctor --hostfile` starts on each host through a remote shell. It says what it is and where it listens, is
// told where the others do, calls them, says what that gave, and ends with its standard input.
//
//   node doctor-host.js
import { createInterface } from 'node:readline';

import { readNetwork } from '../../network.js';
import { factsHere } from './facts.js';
import { callAll, listen, type Door } from './reach.js';

const say = (what: object): void => void process.stdout.write(`${JSON.stringify(what)}\n`);

try {
  const network = readNetwork();
  const listener = await listen(network);
  const { port, token } = listener;
  say({ facts: await factsHere(process.env), port, token, address: network.chosen?.address });
  for await (const line of createInterface({ input: process.stdin })) {
    say({ reached: await callAll(JSON.parse(line) as Door[], network) });
  }
  listener.close();
} catch (error) {
  say({ error: (error as Error).message });
}
