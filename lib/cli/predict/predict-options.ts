// Options of `gradlink predict`.
import type { Command } from 'commander';

import { networkRows } from '../network-rows.js';
import { addTable } from '../parse.js';
import { addOutputOptions, type OutputOptions } from '../reports/report-output.js';
import {
  above,
  byteCount,
  choice,
  flag,
  list,
  text,
  whole,
  WrongValue,
  type Typed,
} from '../../options/kinds.js';
import { optionTable, type ReadOf } from '../../options/table.js';
import { dtypes } from '../../tensor/dtype.js';
import { publishedTables, schemes } from '../../predict/index.js';
import { predictionFormats, type PredictionFormat } from '../../report/index.js';

const validations = [...publishedTables, 'own', 'all'] as const;

export const examples = `
RUN is a sweep: gradlink collectives all_reduce -b 1K -e 16M -f 2 -n 2 --output RUN.json. Sizes in between are
interpolated; larger ones go on at the rate of the largest ones. Every predicted figure has a tilde before it, and a band
beside it.

Examples:
  $ gradlink predict run.json --forward 30 --backward 60 --batch-size 32
  $ gradlink predict run.json --between hosts.json --per-host 8 --compute 90 --all
  $ gradlink predict nvlink.json --between pair.json --per-host 8 --rails 8 --hosts 2,16,128,1000 --compute 90
  $ gradlink predict --link 20,3.1 --compute 180 --network vgg --num-layers 16 --schemes ring,one-peer
  $ gradlink predict --validate all                  the model on tables that others published

Exit status: 0 predicted, 1 with --validate where an error is larger than promised, 2 wrong usage.`;

/** `20,3.1`: microseconds of a small message and GB/s. */
const linkPair: Typed<readonly [seconds: number, bytesPerSecond: number]> = {
  parse(given) {
    const parts = given.split(',').map((part) => (part.trim() === '' ? NaN : Number(part)));
    const [microseconds = NaN, gigabytes = NaN] = parts;
    if (parts.length !== 2 || !(microseconds >= 0) || !(gigabytes > 0) || !isFinite(gigabytes)) {
      throw new WrongValue('Expected MICROSECONDS,GB_PER_SECOND such as 20,3.1.');
    }
    return [microseconds / 1e6, gigabytes * 1e9];
  },
};

const count = whole({ min: 1 });
const workers = whole({ min: 1, max: 1e6 });
const milliseconds = above(0);
const { network, numLayers, imageShape, numClasses } = networkRows;

const predictTable = optionTable({
  between: {
    flag: '--between <run>',
    help: 'sweep between hosts, one rank a host (needs --per-host)',
    kind: text(),
  },
  perHost: {
    flag: '--per-host <count>',
    help: 'workers of a host (default: all)',
    kind: workers,
  },
  link: {
    flag: '--link <us,gb>',
    help: 'in place of RUN: microseconds of a message and GB/s',
    kind: linkPair,
  },
  betweenLink: {
    flag: '--between-link <us,gb>',
    help: 'the same between hosts, in place of --between',
    kind: linkPair,
  },
  network,
  numLayers,
  imageShape,
  numClasses,
  dtype: {
    flag: '--dtype <type>',
    help: 'element type of the gradients',
    kind: choice(dtypes),
    default: 'float32',
  },
  gradients: {
    flag: '--gradients <file>',
    help: 'in place of a network: a JSON array, the bytes of each, in forward order',
    kind: text(),
  },
  forward: {
    flag: '--forward <ms>',
    help: 'milliseconds of the forward pass of one worker',
    kind: milliseconds,
  },
  backward: {
    flag: '--backward <ms>',
    help: 'milliseconds of its backward pass',
    kind: milliseconds,
  },
  compute: {
    flag: '--compute <ms>',
    help: 'both together: a third is taken as forward',
    kind: milliseconds,
  },
  sigma: {
    flag: '--sigma <ms>',
    help: 'standard deviation of a step among workers',
    kind: above(-1e-9),
    default: 0,
  },
  batchSize: {
    flag: '--batch-size <count>',
    help: 'samples of a step of one worker',
    kind: count,
    default: 1,
  },
  bucketCap: {
    flag: '--bucket-cap <size>',
    help: 'gradients that are exchanged together',
    kind: byteCount,
    default: 25 * 2 ** 20,
  },
  overlap: {
    flag: '--no-overlap',
    help: 'exchange after the backward pass',
    kind: flag,
    default: true,
  },
  workers: {
    flag: '--workers <list>',
    help: 'numbers of workers to predict, such as 2,8,64',
    kind: list(workers),
  },
  hosts: {
    flag: '--hosts <list>',
    help: 'in place of --workers: how many full hosts, such as 2,16,1000 (needs --per-host)',
    kind: list(workers),
  },
  rails: {
    flag: '--rails <count>',
    help: 'network interfaces that a host uses at once, each as fast as the link between hosts (default: 1)',
    kind: whole({ min: 1, max: 64 }),
  },
  servers: {
    flag: '--servers <count>',
    help: 'of the parameter server (default: one a host)',
    kind: count,
  },
  schemes: {
    flag: '--schemes <list>',
    help: schemes.join(', '),
    kind: list(choice(schemes)),
  },
  all: {
    flag: '--all',
    help: 'print every scheme, not the best of each number of workers only',
    kind: flag,
  },
  validate: {
    flag: '--validate <table>',
    help: `predict what is known, and print the errors: ${validations.join(', ')} (own: RUN)`,
    kind: choice(validations),
  },
});

export type PredictOptions = ReadOf<typeof predictTable> & OutputOptions<PredictionFormat>;

export function addPredictOptions(command: Command): Command {
  addTable(command, predictTable);
  return addOutputOptions(command, predictionFormats, 'the forecast').addHelpText(
    'after',
    examples,
  );
}
