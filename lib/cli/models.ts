// `gradlink models`: the networks whose gradients `gradlink measure` moves, and their arrays.
import type { Io } from './io.js';
import { networkRows } from './network-rows.js';
import { addTable, read } from './parse.js';
import { choice, flag } from '../options/kinds.js';
import { optionTable, type ReadOf } from '../options/table.js';
import type { Register } from './register.js';
import { shown } from './terminal/terminal.js';
import { asUsage } from './usage-error.js';
import { elementsOf, listNetworks, network } from '../models/index.js';
import { aliases, networkNames, type FamilyName } from '../models/names.js';
import type { Network, NetworkInfo, NetworkOptions } from '../models/index.js';
import { tableLines, type Column } from '../report/table.js';
import { mebibyte, megabytes, sizeText } from '../results/units.js';
import { dtypes } from '../tensor/dtype.js';

const { numLayers, imageShape, numClasses, multiplier, allParams } = networkRows;

const modelsTable = optionTable({
  numLayers: { ...numLayers, help: `${numLayers.help} (default: 152, as in measure)` },
  imageShape: {
    ...imageShape,
    help: `${imageShape.help} (default: 3,224,224 or what the network is published for)`,
  },
  numClasses,
  multiplier,
  dtype: {
    flag: '--dtype <type>',
    help: 'element type that the sizes are for',
    kind: choice(dtypes),
    default: 'float32',
  },
  allParams,
  json: { flag: '--json', help: 'print JSON: names, shapes, elements, bytes', kind: flag },
});

type ModelsOptions = ReadOf<typeof modelsTable>;

const examples = `
Without a network, lists all of them, each at the image size it is published for. MiB is 1,048,576 bytes. Counts the
arrays that MXNet's tool counts: weights and biases. --all-params adds gamma and beta of the batch normalisations.

Examples:
  $ gradlink models
  $ gradlink models resnet --num-layers 50 --json
  $ gradlink models inception-v3 --image-shape 3,299,299

Exit status: 0; 2 wrong usage, an unknown network for example.`;

/** What is left out first where a terminal has no room. */
const lightest = ['elements', 'image'];

/** The first `left` columns are text, the others numbers. */
function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  left: number,
  io: Io,
): string {
  const columns = titles.map((title, index): Column => {
    const weight = lightest.indexOf(title);
    const align = index < left ? 'left' : 'right';
    return { title, align, ...(weight < 0 ? {} : { weight }) };
  });
  return `${shown((room) => tableLines(columns, rows, room), io)}\n`;
}

/** Options of the library: what was not given is left to its defaults. */
function chosen(options: ModelsOptions, info?: NetworkInfo): NetworkOptions {
  const shape = options.imageShape ?? info?.imageShape;
  return {
    numClasses: options.numClasses,
    allParams: options.allParams === true,
    ...(options.numLayers === undefined ? {} : { numLayers: options.numLayers }),
    ...(shape === undefined ? {} : { imageShape: shape }),
    ...(options.multiplier === undefined ? {} : { multiplier: options.multiplier }),
  };
}

interface Row {
  readonly name: string;
  readonly numLayers: number | null;
  readonly multiplier: number | null;
  readonly imageShape: readonly number[] | null;
  readonly arrays: number;
  readonly elements: number;
  readonly bytes: number;
}

/** Every network in every depth and width. */
function allRows(options: ModelsOptions): Row[] {
  const oneOr = (values: readonly number[]): readonly (number | null)[] =>
    values.length === 0 ? [null] : values;
  return listNetworks().flatMap((info) =>
    oneOr(info.numLayers).flatMap((numLayers) =>
      oneOr(info.multipliers).map((multiplier) => {
        const described = network(info.name, {
          ...chosen(options, info),
          ...(numLayers === null ? {} : { numLayers }),
          ...(multiplier === null ? {} : { multiplier }),
        });
        return {
          name: info.name,
          numLayers,
          multiplier,
          imageShape: info.imageShape ?? null,
          arrays: described.parameters.length,
          elements: described.elements,
          bytes: described.bytes(options.dtype),
        };
      }),
    ),
  );
}

function printAll(options: ModelsOptions, io: Io): void {
  const rows = allRows(options);
  if (options.json) {
    io.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
    return;
  }
  const shown = (value: number | null): string => (value === null ? '-' : String(value));
  const header = ['network', 'layers', 'multiplier', 'image', 'arrays', 'elements', 'MiB'];
  const cells = rows.map((row) => [
    row.name,
    shown(row.numLayers),
    shown(row.multiplier),
    row.imageShape?.join(',') ?? '-',
    String(row.arrays),
    String(row.elements),
    (row.bytes / mebibyte).toFixed(3),
  ]);
  io.stdout.write(table(header, cells, 4, io));
}

function printOne(described: Network, options: ModelsOptions, io: Io): void {
  const { name, parameters, elements } = described;
  const bytes = described.bytes(options.dtype);
  if (options.json) {
    const record = {
      name,
      dtype: options.dtype,
      arrays: parameters.length,
      elements,
      bytes,
      parameters,
    };
    // A shape is one line: nine hundred lines of digits help nobody.
    const text = JSON.stringify(record, null, 2).replaceAll(/\[[\d,\s]+\]/g, (shape) =>
      shape.replaceAll(/\s+/g, ' ').replace('[ ', '[').replace(' ]', ']'),
    );
    io.stdout.write(`${text}\n`);
    return;
  }
  const rows = parameters.map((one, key) => [
    String(key),
    one.name,
    one.shape.join(' x '),
    String(elementsOf(one.shape)),
  ]);
  io.stdout.write(table(['key', 'array', 'shape', 'elements'], rows, 3, io));
  io.stdout.write(
    `${name}: ${String(parameters.length)} arrays, ${sizeText(bytes)} (${megabytes(bytes)} MB as MXNet prints it)\n`,
  );
}

export const registerModels: Register = (program, io) => {
  const command = program
    .command('models')
    .description('list the networks that measure knows, or the arrays of one')
    .argument(
      '[network]',
      'print the arrays of this network, in key order',
      read(choice(networkNames, aliases)),
    );
  addTable(command, modelsTable)
    .addHelpText('after', examples)
    .action((name: FamilyName | undefined, options: ModelsOptions) => {
      if (name === undefined) {
        printAll(options, io);
        return;
      }
      const info = listNetworks().find((one) => one.name === name);
      printOne(
        asUsage(() => network(name, chosen(options, info))),
        options,
        io,
      );
    });
};
