// The tables of options: each refuses what is not of its kinds, and takes from a command line what a program would give.
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';

import { addTable, givenOf, typedOf } from '../../lib/cli/parse.js';
import { checkTable } from '../../lib/check/index.js';
import { collectivesTable } from '../../lib/measure/collectives/collectives-options.js';
import { ddpTable } from '../../lib/measure/ddp/ddp-options.js';
import { neighborsTable } from '../../lib/measure/neighbors/neighbors-options.js';
import { p2pTable } from '../../lib/measure/p2p/p2p-options.js';
import { pairsTable } from '../../lib/measure/pairs/pairs-options.js';
import { storeTable } from '../../lib/measure/store/store-options.js';
import { trainTable } from '../../lib/measure/train/train-options.js';
import { givenOptions } from '../../lib/measure/common-run.js';
import { shown, type Table } from '../../lib/options/table.js';

const tables: Readonly<Record<string, Table>> = {
  check: checkTable,
  collectives: collectivesTable,
  neighbors: neighborsTable,
  ddp: ddpTable,
  p2p: p2pTable,
  pairs: pairsTable,
  store: storeTable,
  train: trainTable,
};

const rows = Object.entries(tables).flatMap(([tool, table]) =>
  Object.entries(table).map(([name, row]) => [tool, name, row, table] as const),
);

/** Nothing takes it. */
const wrong = Symbol('wrong');

describe.each(Object.entries(tables))('%s', (_, table) => {
  it('takes no options at all, and gives the defaults', () => {
    const given: Readonly<Record<string, unknown>> = givenOptions(table, {});
    for (const [name, row] of Object.entries(table)) expect(given[name]).toBe(row.default);
  });

  it('names an option that it does not know', () => {
    expect(() => givenOptions(table, { nothing: 1 })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
    );
  });
});

describe.each(rows)('%s: %s', (_, name, row, table) => {
  it('refuses a wrong value by name, and takes its default', () => {
    expect(() => givenOptions(table, { [name]: wrong })).toThrow(name);
    if ('default' in row) expect(givenOptions(table, { [name]: row.default })).toBeDefined();
  });

  it('has help where it can be typed, and a value that reads back as it is shown', () => {
    expect(row.help === undefined).toBe(row.flag === undefined);
    const { kind, default: value } = row;
    if (row.flag === undefined || value === undefined || typeof value === 'boolean') return;
    expect(kind.parse(String(shown(kind, value) as string | number))).toEqual(value);
  });
});

it('records numbers in the units of programs, and what is no plain value as it is typed', () => {
  const { asked } = givenOptions(p2pTable, { timeoutMs: 500 });
  expect(asked.options).toMatchObject({ timeoutMs: 500, bytes: 512 * 2 ** 20 });
  const compute = { value: 60, unit: 'percent' } as const;
  expect(givenOptions(ddpTable, { syntheticCompute: compute }).asked.options).toMatchObject({
    syntheticCompute: '60%',
  });
});

describe('a command line', () => {
  const read = (table: Table, ...line: string[]) =>
    addTable(new Command(), table).exitOverride().parse(line, { from: 'user' }).opts();

  it('gives what a program would, and is recorded as it was typed', () => {
    const opts = read(
      ddpTable,
      '--synthetic-compute',
      '60%',
      '--copy-gradients',
      '--modes',
      'sync',
    );
    expect(givenOf(ddpTable, opts)).toMatchObject({
      syntheticCompute: { value: 60, unit: 'percent' },
      copyGradients: true,
      modes: ['sync'],
      steps: 100,
    });
    const typed = typedOf(ddpTable, opts);
    expect(typed).toMatchObject({ syntheticCompute: '60%', originalUnits: false });
  });

  it('is refused as commander refuses', () => {
    const command = addTable(new Command(), ddpTable).exitOverride();
    command.configureOutput({ writeErr: () => undefined });
    expect(() => command.parse(['--steps', '0'], { from: 'user' })).toThrow(
      expect.objectContaining({ code: 'commander.invalidArgument' }),
    );
  });
});
