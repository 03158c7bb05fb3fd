// Options of `gradlink predict`.
import { InvalidArgumentError, type Command } from 'commander';

import { imageShape, offering, read } from '../parse.js';
import { addOutputOptions } from '../reports/report-output.js';
import { above, byteCount, choice, list, whole } from '../../options/kinds.js';
import { dtypes, type DType } from '../../tensor/dtype.js';
import type { ImageShape } from '../../models/index.js';
import { networkNames } from '../../models/names.js';
import { publishedTables, schemes, type Scheme } from '../../predict/index.js';
import { predictionFormats, type PredictionFormat } from '../../report/index.js';

export const validations = [...publishedTables, 'own', 'all'] as const;

export interface PredictOptions {
  readonly between?: string;
  readonly perHost?: number;
  readonly link?: readonly [seconds: number, bytesPerSecond: number];
  readonly betweenLink?: readonly [seconds: number, bytesPerSecond: number];
  readonly network: string;
  readonly numLayers?: number;
  readonly imageShape?: ImageShape;
  readonly numClasses: number;
  readonly dtype: DType;
  readonly gradients?: string;
  readonly forward?: number;
  readonly backward?: number;
  readonly compute?: number;
  readonly sigma: number;
  readonly batchSize: number;
  readonly bucketCap: number;
  readonly overlap: boolean;
  readonly workers?: readonly number[];
  readonly hosts?: readonly number[];
  readonly rails?: number;
  readonly servers?: number;
  readonly schemes?: readonly Scheme[];
  readonly all?: true;
  readonly validate?: (typeof validations)[number];
  readonly format?: PredictionFormat;
  readonly output?: string;
}

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

const milliseconds = read(above(0));

/** `20,3.1`: microseconds of a small message and GB/s. */
function linkPair(text: string): readonly [number, number] {
  const parts = text.split(',').map((part) => (part.trim() === '' ? NaN : Number(part)));
  const [microseconds = NaN, gigabytes = NaN] = parts;
  if (parts.length !== 2 || !(microseconds >= 0) || !(gigabytes > 0) || !isFinite(gigabytes)) {
    throw new InvalidArgumentError('Expected MICROSECONDS,GB_PER_SECOND such as 20,3.1.');
  }
  return [microseconds / 1e6, gigabytes * 1e9];
}

export function addPredictOptions(command: Command): Command {
  command
    .option('--between <run>', 'sweep between hosts, one rank a host (needs --per-host)')
    .option(
      '--per-host <count>',
      'workers of a host (default: all)',
      read(whole({ min: 1, max: 1e6 })),
    )
    .option('--link <us,gb>', 'in place of RUN: microseconds of a message and GB/s', linkPair)
    .option('--between-link <us,gb>', 'the same between hosts, in place of --between', linkPair)
    .option(
      '--network <name>',
      'whose gradients are exchanged (gradlink models)',
      offering(networkNames, String),
      'resnet',
    )
    .option('--num-layers <count>', 'depth, where a network has several', read(whole({ min: 1 })))
    .option('--image-shape <c,h,w>', 'channels, height and width', imageShape)
    .option('--num-classes <count>', 'outputs of the classifier', read(whole({ min: 1 })), 1000)
    .option('--dtype <type>', 'element type of the gradients', read(choice(dtypes)), 'float32')
    .option(
      '--gradients <file>',
      'in place of a network: a JSON array, the bytes of each, in forward order',
    )
    .option('--forward <ms>', 'milliseconds of the forward pass of one worker', milliseconds)
    .option('--backward <ms>', 'milliseconds of its backward pass', milliseconds)
    .option('--compute <ms>', 'both together: a third is taken as forward', milliseconds)
    .option('--sigma <ms>', 'standard deviation of a step among workers', read(above(-1e-9)), 0)
    .option('--batch-size <count>', 'samples of a step of one worker', read(whole({ min: 1 })), 1)
    .option(
      '--bucket-cap <size>',
      'gradients that are exchanged together',
      read(byteCount),
      25 * 2 ** 20,
    )
    .option('--no-overlap', 'exchange after the backward pass')
    .option(
      '--workers <list>',
      'numbers of workers to predict, such as 2,8,64',
      read(list(whole({ min: 1, max: 1e6 }))),
    )
    .option(
      '--hosts <list>',
      'in place of --workers: how many full hosts, such as 2,16,1000 (needs --per-host)',
      read(list(whole({ min: 1, max: 1e6 }))),
    )
    .option(
      '--rails <count>',
      'network interfaces that a host uses at once, each as fast as the link between hosts (default: 1)',
      read(whole({ min: 1, max: 64 })),
    )
    .option(
      '--servers <count>',
      'of the parameter server (default: one a host)',
      read(whole({ min: 1 })),
    )
    .option('--schemes <list>', schemes.join(', '), read(list(choice(schemes))))
    .option('--all', 'print every scheme, not the best of each number of workers only')
    .option(
      '--validate <table>',
      `predict what is known, and print the errors: ${validations.join(', ')} (own: RUN)`,
      read(choice(validations)),
    );
  return addOutputOptions(command, predictionFormats, 'the forecast').addHelpText(
    'after',
    examples,
  );
}
