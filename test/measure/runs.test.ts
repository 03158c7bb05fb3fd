// The benchmarks as a program calls them: options with defaults, events, and a report that fits the schema.
import { describe, expect, it, vi } from 'vitest';

import { KVStore } from '../../lib/kvstore/kvstore.js';
import {
  runCollectives,
  runDdp,
  runNeighbors,
  runP2p,
  runStores,
  runTrain,
  type CaseResult,
  type IterationLine,
  type Report,
  type RunEvents,
} from '../../lib/measure/index.js';
import { network } from '../../lib/models/index.js';
import { expectReport } from '../support/measure.js';

/** Notes what a run tells, in order. */
function noted(): { events: RunEvents; told: string[]; cases: CaseResult[] } {
  const told: string[] = [];
  const cases: CaseResult[] = [];
  return {
    told,
    cases,
    events: {
      onStart: ({ run }, ranks) => void told.push(`start ${run.tool} ${ranks.length}`),
      onProgress: (done, total) => void told.push(`${done}/${total}`),
      onCases(some) {
        cases.push(...some);
        told.push(`cases ${some.length}`);
      },
    },
  };
}

function expectWhole(report: Report, cases: readonly CaseResult[]): void {
  expectReport(JSON.parse(JSON.stringify(report)));
  expect(report.cases).toEqual(cases);
  expect(report.cases.map(({ status }) => status).filter((status) => status === 'error')).toEqual(
    [],
  );
  expect(report.run.commandLine).toEqual([]);
  expect(report.environment.threads).toBeGreaterThan(0);
}

describe('runCollectives', () => {
  it('gives a report, and tells of it in order', async () => {
    const { events, told, cases } = noted();
    const sizes = [64, 4096];
    const report = await runCollectives(
      { collective: 'all_reduce', ranks: 3, sizes, iterations: 2, warmup: 1 },
      events,
    );
    expectWhole(report, cases);
    expect(told).toEqual(['start collectives 3', '0/2', 'cases 2', '1/2', 'cases 2', '2/2']);
    // What was not given is there with its default.
    expect(report.run.options).toMatchObject({
      collective: 'all_reduce',
      ranks: 3,
      sizes: '64,4096',
      ops: 'sum',
      average: 'mean',
    });
    expect(report.cases.map(({ parameters }) => parameters.bytes)).toEqual([64, 64, 4096, 4096]);
  });

  it('says what it was asked in the words of who asked', async () => {
    const asked = { commandLine: ['all_reduce', '-b', '8'], options: { minbytes: 8 } };
    const { run } = await runCollectives({
      collective: 'all_reduce',
      sizes: [8],
      iterations: 1,
      asked,
    });
    expect(run.commandLine).toEqual(asked.commandLine);
    expect(run.options).toEqual({ collective: 'all_reduce', ranks: 2, hosts: 1, minbytes: 8 });
  });

  it.each([
    [{ collective: 'all_reduce', size: [8] }, 'ERR_INVALID_ARG_VALUE', 'size'],
    [{ collective: 'all_reduced' }, 'ERR_INVALID_ARG_VALUE', 'all_reduced'],
    [{ collective: 'all_reduce', sizes: [-1] }, 'ERR_OUT_OF_RANGE', 'sizes'],
    [{ collective: 'all_reduce', sizes: [0] }, 'ERR_OUT_OF_RANGE', 'sizes'],
    [{ collective: 'reduce', ranks: 2, roots: [2] }, 'ERR_OUT_OF_RANGE', 'roots'],
    [{ collective: 'all_reduce', timeoutMs: 0 }, 'ERR_OUT_OF_RANGE', 'timeoutMs'],
    [{ collective: 'all_reduce', iterations: 0 }, 'ERR_OUT_OF_RANGE', 'iterations'],
    [{ collective: 'all_reduce', perIteration: 'x' }, 'ERR_INVALID_ARG_TYPE', 'perIteration'],
    [{ collective: 'all_reduce', perIterationSkip: -3 }, 'ERR_OUT_OF_RANGE', 'perIterationSkip'],
    [{ collective: 'all_reduce', perIterationSkip: 20 }, 'ERR_OUT_OF_RANGE', 'from 0 to 19'],
    [{ collective: 'all_reduce', cpuTime: 1 }, 'ERR_INVALID_ARG_TYPE', 'cpuTime'],
    [{ collective: 'all_reduce', timestamps: 'x' }, 'ERR_INVALID_ARG_TYPE', 'timestamps'],
    ['all_reduce', 'ERR_INVALID_ARG_TYPE', 'options'],
  ])('refuses %j', async (options, code, word) => {
    const running = runCollectives(options as never);
    await expect(running).rejects.toMatchObject({ code });
    await expect(running).rejects.toThrow(word);
  });

  it('takes undefined for an option that was not given', async () => {
    const options = { collective: 'broadcast', ranks: undefined, sizes: [8], iterations: 1 };
    const { cases } = await runCollectives(options as never);
    expect(cases[0]?.parameters.ranks).toBe(2);
  });
});

describe('runNeighbors', () => {
  it('measures averaging beside everybody’s sum', async () => {
    const { events, told, cases } = noted();
    const report = await runNeighbors(
      { collective: 'neighbor_all_reduce', ranks: 3, sizes: [64], samples: 2, warmup: 0 },
      events,
    );
    expectWhole(report, cases);
    expect(told).toEqual(['start collectives 0', '0/2', 'cases 2', '1/2', 'cases 2', '2/2']);
    expect(report.run.options).toMatchObject({ ranks: 3, topology: 'exp2', ranksPerNode: 3 });
  });

  it('refuses ranks of a node that do not divide the ranks', async () => {
    const running = runNeighbors({ collective: 'neighbor_all_reduce', ranks: 3, ranksPerNode: 2 });
    await expect(running).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
  });
});

describe('runStores', () => {
  const mlp = network('mlp', { imageShape: [1, 28, 28], numClasses: 10 });
  const small = { network: mlp, devices: ['cpu:0', 'cpu:1'], batches: 2 };

  it('measures stores one after the other, and waives those that are not here', async () => {
    const { events, told, cases } = noted();
    const lines: IterationLine[] = [];
    const stores: string[] = [];
    const unavailable: string[] = [];
    const report = await runStores(
      { ...small, kvStores: ['local', 'nccl'], display: 2 },
      {
        ...events,
        onLine: (line) => void lines.push(line),
        onStore: (kvStore) => void stores.push(kvStore),
        onUnavailable: (kvStore) => void unavailable.push(kvStore),
      },
    );
    expectWhole(report, cases);
    expect(report.cases.map(({ status }) => status)).toEqual(['ok', 'waived']);
    expect(told).toEqual(['start measure 0', '0/3', '1/3', '2/3', '3/3', 'cases 1', 'cases 1']);
    expect(lines.map(({ iteration }) => iteration)).toEqual([2]);
    expect([stores, unavailable]).toEqual([['local'], ['nccl']]);
  });

  it.each([false, true])('opens each store once and closes it, given up: %j', async (givenUp) => {
    const create = vi.spyOn(KVStore, 'create');
    try {
      const running = runStores(
        { ...small, kvStores: ['local', 'nccl', 'device'], batches: 1 },
        {
          onUnavailable() {
            if (givenUp) throw new Error('no further');
          },
        },
      );
      await (givenUp ? expect(running).rejects.toThrow('no further') : running);
      expect(create.mock.calls.map(([type]) => type)).toEqual(['local', 'nccl', 'device']);
      const opened = create.mock.settledResults.filter(({ type }) => type === 'fulfilled');
      expect(opened).toHaveLength(2);
      for (const { value } of opened) {
        await expect((value as KVStore).barrier()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
      }
    } finally {
      create.mockRestore();
    }
  });

  it('refuses lines of more batches than there are, and a type that is none', async () => {
    await expect(runStores({ ...small, display: 3 })).rejects.toMatchObject({
      code: 'ERR_OUT_OF_RANGE',
    });
    // @ts-expect-error -- no store is called so
    await expect(runStores({ ...small, kvStores: ['dist_synk'] })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
    });
  });
});

describe('runDdp', () => {
  it('compares modes on a timetable', async () => {
    const { events, told, cases } = noted();
    const report = await runDdp(
      {
        syntheticCompute: { value: 5, unit: 'milliseconds' },
        modes: ['overlap', 'sync'],
        bucketSizes: [25],
        steps: 1,
        warmup: 1,
      },
      events,
    );
    expectWhole(report, cases);
    expect(told[0]).toBe('start ddp 0');
    expect(told.at(-1)).toBe('cases 4');
    expect(told).toContain('4/4');
    expect(report.run.options).toMatchObject({ steps: 1, syntheticCompute: '5', ranks: 1 });
  });
});

describe('runP2p and runTrain', () => {
  it('refuse what they do not know before they look for anything', async () => {
    await expect(runP2p({ cases: ['host_to_nowhere'] })).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
    await expect(runTrain({ epochs: 3 } as never)).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
  });

  it('a training is one case, with what it told on the way', async () => {
    const { events, told, cases } = noted();
    const rates: number[] = [];
    const report = await runTrain(
      {
        model: 'mlp',
        dataset: 'mnist',
        batchSize: 2,
        backend: 'cpu',
        warmupSteps: 1,
        iterations: 2,
        stepsPerIteration: 1,
      },
      { ...events, onIteration: (_, rate) => void rates.push(rate) },
    );
    expectWhole(report, cases);
    expect(told[0]).toBe('start train 0');
    expect(told).toContain('3/3');
    expect(rates).toHaveLength(2);
    expect(report.cases[0]?.parameters).toMatchObject({ model: 'mlp', workers: 1 });
  });
});
