import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { parsePlan } from '../../../lib/measure/train/plan.js';

const known = ['model', 'dataset', 'dist-optimizer', 'atc-style', 'lr'];

/** Nine of the line before, nine times over: half a gigabyte of entries. */
const bomb = Array.from({ length: 9 }, (_, at) => {
  const entries = Array(9).fill(at === 0 ? 'x' : `*a${at - 1}`);
  return `a${at}: &a${at} [${entries.join()}]`;
}).join('\n');

describe('parsePlan', () => {
  it('has the protocol for what is not said', () => {
    expect(parsePlan('grid: [[1, 1]]', known)).toEqual({
      models: [],
      cells: [{ machines: 1, devices: 1 }],
      batchSizes: [32],
      repeats: 5,
      measuring: ['--steps', '100', '--num-warmup-batches', '20'],
      target: 0.8,
      hosts: [],
      launcher: 'local',
      launch: [],
      servers: 0,
      options: {},
      timeoutSeconds: undefined,
    });
  });

  it('reads everything', () => {
    const text = `
      model: resnet50
      dist_optimizer: neighbor_allreduce
      atc-style: true
      lr: 0.5
      batch_size: [64, 128]
      grid: [[1, 1], [12, 8]]
      repeats: 7
      warmup: 0
      steps: 10
      target: 0.9
      hosts: [node1, node2]
      launcher: mpi
      launch: [--bind-to, none]
      timeout: 600
      servers: 2`;
    expect(parsePlan(text, known)).toEqual({
      models: ['resnet50'],
      cells: [
        { machines: 1, devices: 1 },
        { machines: 12, devices: 8 },
      ],
      batchSizes: [64, 128],
      repeats: 7,
      measuring: ['--steps', '10', '--num-warmup-batches', '0'],
      target: 0.9,
      hosts: ['node1', 'node2'],
      launcher: 'mpi',
      servers: 2,
      timeoutSeconds: 600,
      launch: ['--bind-to', 'none'],
      options: {
        'dist-optimizer': 'neighbor_allreduce',
        'atc-style': 'true',
        lr: '0.5',
      },
    });
  });

  it("times tasks for ElasticDL's table, of several networks and numbers of workers", () => {
    const plan = parsePlan('{model: [a, b], workers: [1, 3], lr: 0.5}', known, 'elasticdl');
    expect(plan).toMatchObject({ models: ['a', 'b'], repeats: 1, measuring: [] });
    expect(plan.cells).toEqual([
      { machines: 1, devices: 1 },
      { machines: 1, devices: 3 },
    ]);
    expect(() => parsePlan('{workers: 1, steps: 5}', known, 'elasticdl')).toThrow(
      /got steps, .*--style tianshu/,
    );
  });

  it('reads the plan of the examples', () => {
    const text = readFileSync(new URL('../../../examples/elasticdl.yaml', import.meta.url), 'utf8');
    const options = ['dataset', 'num-batches-per-iter', 'num-iters', 'num-warmup-batches'];
    expect(parsePlan(text, options, 'elasticdl').models).toEqual(['mobilenetv2', 'resnet50']);
  });

  it('goes to hosts over ssh', () => {
    expect(parsePlan('{grid: [[2, 1]], hosts: [node1, node2]}', known).launcher).toBe('ssh');
  });

  it.each([
    ['- 1', 'entries such'],
    ['model: mlp', /\bfor grid, .*\bfor workers$/],
    ['grid: [[1]]', 'grid, got [1]'],
    ['grid: [[0, 1]]', /\b1 for grid, got 0$/],
    ['{grid: [[1, 1]], repeats: 1.5}', 'repeats, got 1.5'],
    ['{grid: [[1, 1]], batch-size: [8, x]}', 'batch-size, got "x"'],
    ['{grid: [[1, 1]], target: 0}', 'target, got 0'],
    ['{grid: [[1, 1]], timeout: soon}', 'timeout, got "soon"'],
    ['{grid: [[1, 1]], hosts: node1}', 'hosts, got "node1"'],
    ['{grid: [[1, 1]], hosts: [a], launcher: local}', 'launcher, got "local"'],
    ['{grid: [[1, 1]], launcher: slurm}', /\bhosts .*launcher, got "slurm"/],
    ['{grid: [[1, 1]], launch: --tag-output}', 'launch, got "--tag-output"'],
    ['{grid: [[1, 1]], modle: mlp}', /\bmodel, .*\bentry modle\b.*\bcommand line\b/],
    ['{grid: [[1, 1]], model: 1}', 'model, got 1'],
    ['{grid: [[1, 1]], lr: [1]}', 'lr, got [1]'],
    ['{grid: [[1, 1]], workers: [1]}', /\bgrid and workers cannot be combined/],
    ['{workers: [0]}', 'workers, got 0'],
    ['&a {workers: *a}', /\b64 levels\b/],
    [bomb, /\balias\b.*\bexhaustion\b/],
  ])('refuses %s', (text, message) => {
    expect(() => parsePlan(text, known)).toThrow(message);
  });
});
