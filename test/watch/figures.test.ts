import { describe, expect, it } from 'vitest';

import { iterationLine } from '../../lib/report/mxnet-lines.js';
import { collectivesTool } from '../../lib/report/index.js';
import { FigureReader } from '../../lib/watch/figures.js';
import { collectiveCase, report } from '../support/reports.js';

/** `NAME | VALUE UNIT` of each figure of the last of these lines. */
function read(...lines: readonly string[]): string[] {
  const reader = new FigureReader();
  const found = lines.map((line) => reader.read(line)).at(-1) ?? [];
  return found.map(({ name, value, unit }) => `${name} | ${value} ${unit.unit}`.trim());
}

/** Numbers of 13 columns as nccl-tests prints them. */
const row =
  '      65536         16384     float     sum      -1    42.88    1.53    2.67      0    42.83    1.53    2.68      0';
const ofRow = ['bus bandwidth, out of place | 2.67 GB/s', 'bus bandwidth, in place | 2.68 GB/s'];

/** Rows of `LINE => FIGURES`. */
const rowsOf = (table: string) =>
  table
    .slice(1)
    .split('\n')
    .map((one) => one.split(' => ') as [string, string]);

/** Behind which others come: a table is read behind many a word and a colon. */
const prefixes = `
[1,0]<stdout>:·[0]<stdout>:·[0]<stderr>: ·[prterun-h-12@1,0]<stdout>: ·<stdout>:·0: · 12: ·[0] ·[server 1] ·
[node1] ·[rank0]: ·[Rank 0] ·[pod/n-abc/main] ·[10.0.0.1]: ·2025-03-01T10:11:12.123456789Z ·
2025-03-01T10:11:12+01:00 ·2025/03/01 10:11:12 ·10:11:12 ·[10:11:12] ·10:11:12.123 ·[2025-03-01 10:11:12,123] ·
[  12.345678] ·Mar  1 10:11:12 host1 ·Mar 01 10:11:12 host1 prog[123]: ·1740823872.123 ·INFO:root:·[INFO] ·
INFO - ·2025-01-01 12:00:00,123 INFO ·W0301 10:11:12.123456  12 a.py:3] ·
2025-01-01 12:00:00,123 - my.log - INFO - ·2025-01-01 12:00:00.123 | INFO     | __main__:f:12 - ·
2025-03-01T10:11:12.1Z stdout F ·(Worker pid=12, ip=10.0.0.1) ·node1: ·10.0.0.1: ·worker-1  | ·0: [10:11:12] ·
INFO:root:[10:11:12] ·03/01/2025 10:11:12 ·\u0007·\u001b[32m·\u001b]0;title\u0007\u001b[1;31m·
\u001b[32m0: \u001b[0m·2025-03-01T10:11:12Z [1,0]<stdout>:[0] ·Wed Mar  1 10:11:12 2025[1,0]<stdout>:·
[2025-03-01 10:11:12,123] [INFO] [x.py:12:f] [Rank 0] `;

const ofNcclTests = `
old, without a root: 4096 1024 float sum 51.20 0.08 0.14 1e-06 50.15 0.08 0.15 1e-06 => 0.14 0.15
old, of a gathering: 65536 2048 float 51.01 1.28 1.12 0e+00 50.19 1.30 1.14 0e+00 => 1.12 1.14
old, with a root and no sum: 65536 16384 float 0 51.01 1.28 1.12 0e+00 50.19 1.30 1.14 0e+00 => 1.12 1.14
not checked: 1024 256 float none -1 19.56 0.05 0.00 N/A 0.78 1.31 0.25 N/A => 0 0.25
a time of one digit: 67108864 16777216 float sum -1 1e+03 67.11 117.44 N/A 1002.2 66.96 117.18 N/A => 117.44 117.18
times of one digit without a root: 33554432 8388608 float sum 1e+03 32.26 56.46 0 1e+03 32.31 56.54 0 => 56.46 56.54
a time without decimals: 1073741824 268435456 half mulsum 0 19265 55.74 97.54 0 19266 55.73 97.53 0 => 97.54 97.53
the same without a root: 1073741824 268435456 half mulsum 19265 55.74 97.54 0 19266 55.73 97.53 0 => 97.54 97.53
-I: 65536 16384 float sum -1 42.88 1.53 2.67 0 40.1 45.2 45.0 3.1 42.83 1.53 2.68 0 40.0 45.1 45.0 3.0 => 2.67 2.68
a time stamp behind: 65536         16384     float     sum      -1    42.88    1.53    2.67      0    42.83    1.53    2.68      0 2025-03-01 10:11:12 => 2.67 2.68
sizes that bandwidths do not count whole: 4096 1024 float none -1 10.00 1.23 1.24 0 10.10 1.21 1.22 0 => 1.24 1.22
no bytes: 0 0 float sum -1 0.17 0.00 0.00 0 0.16 0.00 0.00 0 => 0 0`;

const ofOsu = `
# Size       Avg Latency(us) / 8    2.41 => avg latency | 2.41 us
# Size          Latency (us) / 0    1.05 => latency | 1.05 us
# Size      Bandwidth (MB/s) / 4194304   12000.50 => bandwidth | 12000.5 MB/s
# Size                  MB/s        Messages/s / 1        3.10        3101234.56 => bandwidth | 3.1 MB/s; rate | 3101234.56 messages/s
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations / 4          2.35              2.10              3.20        1000 => avg latency | 2.35 us; min latency | 2.1 us; max latency | 3.2 us
# Size       Avg Latency(us)        Validation / 4    2.35    Pass => avg latency | 2.35 us
# Size (B)       Latency (us) / 4    2.35 => latency | 2.35 us
# Avg Latency(us) /             7.31 => avg latency | 7.31 us`;

/**
 * Horovod's, BlueFog's and tf_cnn_benchmarks; MXNet, in three spellings; Keras; tqdm: Lightning, transformers; Megatron,
 * DeepSpeed, TensorFlow's estimators, PyTorch's examples, llm.c; numbers and units as people print them. What stands for a
 * number is no name of the next one.
 */
const ofTrainings = `
Iter #3: 123.4 img/sec per GPU => throughput per device | 123.4 images/s
Img/sec per GPU: 105.7 +-1.0 => throughput per device, mean | 105.7 images/s
Total img/sec on 8 GPU(s): 1,234.5 +-4.0 => throughput, total | 1234.5 images/s
10\timages/sec: 304.8 +/- 0.1 (jitter = 0.6)\t8.028 => throughput | 304.8 images/s
total images/sec: 304.75 => throughput, total | 304.75 images/s
INFO:root:Epoch[0] Batch [20]\tSpeed: 1005.10 samples/sec\taccuracy=0.51 => throughput | 1005.1 samples/s
2020-01-02 10:00:00,123 Node[0] Epoch[0] Batch [60]\tSpeed: 980.22 samples/sec => throughput | 980.22 samples/s
[Epoch 0 Batch 80] loss=0.5 speed: 1000.1 samples/s => loss | 0.5; throughput | 1000.1 samples/s
 10/100 [==>......] - ETA: 3s - loss: 0.6931 - acc: 0.5 => loss | 0.6931
100/100 [====] - 2s 20ms/step - loss: 0.5 - val_loss: 0.6 => time per step | 20 ms; loss | 0.5; val loss | 0.6
100/100 ━━━━ 2s 450us/step - accuracy: 0.5 - loss: 0.69 => time per step | 450 us; loss | 0.69
Epoch 0: 100%|██| 10/10 [00:01<00:00,  5.50it/s, loss=0.3, v_num=0] => throughput | 5.5 it/s; loss | 0.3
 50%|█████     | 50/100 [00:10<00:10,  1.25s/it] => throughput | 0.8 it/s
 50%|█████     | 50/100 [00:10<00:10, 1.02kit/s] => throughput | 1020 it/s
{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 1.0} => loss | 0.5
{'train_samples_per_second': 65.1, 'train_steps_per_second': 8.1, 'train_loss': 0.35} => throughput, train | 65.1 samples/s; throughput, train | 8.1 steps/s; train loss | 0.35
 iteration 10/ 100 | consumed samples: 2560 | elapsed time per iteration (ms): 620.3 | throughput per GPU (TFLOP/s/GPU): 400.1 | lm loss: 1.04E+01 | loss scale: 65536.0 | => time per step | 620.3 ms; compute per device | 400.1 TFLOP/s; lm loss | 10.4
epoch=0/micro_step=10, RunningAvgSamplesPerSec=132.5, CurrSamplesPerSec=130.1, MemAllocated=1.2GB => throughput, running avg | 132.5 samples/s; throughput, curr | 130.1 samples/s
INFO:tensorflow:global_step/sec: 12.3 => throughput | 12.3 steps/s
INFO:tensorflow:loss = 0.5, step = 100 (8.1 sec) => loss | 0.5
| epoch   1 |   200/ 2983 batches | ms/batch 12.34 | loss  7.63 | => time per step | 12.34 ms; loss | 7.63
Epoch: [0][  10/5005]\tTime  0.350 ( 0.900)\tLoss 6.98e+00 (6.95e+00) => loss | 6.98
step 1/100 | loss 10.98 (+nanz)| lr 1.00e-04 | 120.50 ms | 4300000 tok/s => loss | 10.98; throughput | 4300000 tokens/s
step 7/100, 12.5 ms, 456.7 images/s => throughput | 456.7 images/s
batch 12: 1e3 samples per second => throughput | 1000 samples/s
iteration 2 8192 tokens/s => throughput | 8192 tokens/s
step 10 1,234.5 images/s => throughput | 1234.5 images/s
step 10: 1.2k samples/s => throughput | 1200 samples/s
Tokens/s: 1,234,567 => throughput | 1234567 tokens/s
Throughput: 1.2e3 tokens/s/GPU => throughput per device | 1200 tokens/s
step 3 350 +- 1.2 images/s => throughput | 350 images/s
step 3 3.4 GB/s => bandwidth | 3.4 GB/s
bandwidth: 3.4 GiB/s => bandwidth | 3.4 GiB/s
speed: 300 MB/s => bandwidth | 300 MB/s
busbw: 3.4 Gbit/s => bandwidth, busbw | 3.4 Gbit/s
step 1 algbw 3.4 GB/s busbw 4.5 GB/s => bandwidth, algbw | 3.4 GB/s; bandwidth, busbw | 4.5 GB/s
step 3 bandwidth 25 Gbps => bandwidth | 25 Gbit/s
step time: 350 µs => time per step | 350 us
epoch 1 loss=-1.5e-3 => loss | -0.0015
train/loss: 3.4 => train loss | 3.4
loss: .5 => loss | 0.5
step 3 loss: nan 12.3k tokens/s => throughput | 12300 tokens/s
step 3 loss: -inf 12.3k tokens/s => throughput | 12300 tokens/s
step 3 acc=N/A 12.3k tokens/s => throughput | 12300 tokens/s
step 3 loss=nan speed: 20 samples/s => throughput | 20 samples/s`;

const ofNothing = `
·loss·loss --·loss: nan·loss: inf·loss scale: 65536.0·0.3% packet loss·packet loss 3%·loss-0·run/loss-0/a·
loss 1,5·loss: 1.2.3·loss 10:11:12·loss_cls: 0.5·waiting for 4 images/s·waiting for 4 GB/s·
1.2/3.4 MB 5.6 MB/s eta 0:00:01·1/3 MB 5.6 MB/s eta 0:00:01·0.5/1.5 done 5.6 MB/s·step 3 3.4 gb/s·
step 5 1234,5 images/s·step 1 12.5.3 images/s·step 3: ?it/s·[00:00<?, ?it/s]·# 4 ranks·2026-01-01 12 34 started·
time 3600 s·iter 5, time 3600 s·350 +-1.2 images/sec: the rates`;

describe("the package's own lines", () => {
  it('are known', () => {
    const iteration = { iteration: 3, seconds: 0.02, bytesPerSecond: 11.1e9, error: 0 };
    expect(read(iterationLine(iteration))).toEqual(['bandwidth per device | 11.1 GB/s']);
    const [line = ''] = collectivesTool.rows([collectiveCase()]);
    expect(read(line)).toEqual(['bus bandwidth, out of place | 3.15 GB/s']);
    expect(read(`[1,0]<stdout>:${line}`)).toHaveLength(1);
  });

  it('are known where a narrow terminal left columns out', () => {
    const cases = [collectiveCase(), collectiveCase({ placement: 'in-place' })];
    for (const room of [60, 80, 100, 120]) {
      const head = collectivesTool.head(report('collectives', cases), [], room);
      const lines = [...head, ...collectivesTool.rows(cases, room)];
      expect(read(...lines)[0]).toBe('bus bandwidth, out of place | 3.15 GB/s');
    }
  });
});

describe('a row behind what others put before it', () => {
  it.each(prefixes.slice(1).replaceAll('\n', '').split('·'))('%j', (prefix) => {
    expect(read(prefix + row)).toEqual(ofRow);
  });
});

describe('rows of nccl-tests', () => {
  it.each(rowsOf(ofNcclTests))('%s', (titled, figures) => {
    const line = titled.slice(titled.indexOf(': ') + 2);
    const [outOfPlace, inPlace] = figures.split(' ');
    expect(read(line)).toEqual([
      `bus bandwidth, out of place | ${outOfPlace} GB/s`,
      `bus bandwidth, in place | ${inPlace} GB/s`,
    ]);
  });

  it('of a replayed trace are in place, of a torn line out of place', () => {
    const half = '1.53    2.67      0';
    expect(read(`65536 16384 float sum -1${' '.repeat(34)}42.88 ${half}`)).toEqual([
      'bus bandwidth, in place | 2.67 GB/s',
    ]);
    expect(read(`65536 16384 float sum -1   42.88  ${half}`)).toEqual([
      'bus bandwidth, out of place | 2.67 GB/s',
    ]);
  });

  it('are all that counts where they are there, else their average does', () => {
    const average = '# Avg bus bandwidth    : 232.155';
    for (const prefix of ['', '[1,0]<stdout>:', '2025-03-01T10:11:12Z ']) {
      expect(read(prefix + average)).toEqual(['bus bandwidth, average | 232.155 GB/s']);
    }
    expect(read('[INFO] Avg bus bandwidth : 83.1')).toHaveLength(1);
    expect(read(row, average)).toEqual([]);
    expect(read('# Avg bus bandwidth : nan')).toEqual([]);
  });

  it('are read by their heading where there is one', () => {
    const heading =
      '#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error';
    const line = '64 16 float sum 12 9.99 8.88 0 13 7.77 6.66 0';
    expect(read(`[1,0]<stdout>:${heading}`, `[1,0]<stdout>:${line}`)).toEqual([
      'bus bandwidth, out of place | 8.88 GB/s',
      'bus bandwidth, in place | 6.66 GB/s',
    ]);
  });
});

describe("OSU's tables", () => {
  it.each(rowsOf(ofOsu))('%j', (lines, wanted) => {
    const [heading = '', line = ''] = lines.split(' / ');
    const figures = wanted.split('; ');
    expect(read('# OSU MPI Test v7.3', heading, line)).toEqual(figures);
    expect(read(`[0] ${heading}`, `[0] ${line}`)).toEqual(figures);
  });

  it('end with their last row, and a row alone has no unit', () => {
    expect(read('4    2.35')).toEqual([]);
    expect(read('# Size       Avg Latency(us)', '4   2.35', 'done', '8    2.41')).toEqual([]);
  });
});

describe("nvbandwidth's matrices", () => {
  const head = [
    'Running a_memcpy_ce.',
    'memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)',
    '           0         1',
  ];

  it('are read cell by cell in the unit of their caption', () => {
    expect(read(...head, ' 0       N/A    276.07')).toEqual(['a_memcpy_ce | 276.07 GB/s']);
    const latency = ['Running l.', 'memory latency SM CPU(row) <-> GPU(column) (ns)', '  0'];
    expect(read(...latency, ' 0    772.58')).toEqual(['l | 772.58 ns']);
  });

  it('end with their last row; a sum counts where its parts were not read', () => {
    expect(read(...head, ' 0       N/A    276.07', 'SUM a_memcpy_ce 552.43')).toEqual([]);
    expect(read('SUM a_memcpy_ce 552.43')).toEqual(['a_memcpy_ce, sum | 552.43 GB/s']);
    expect(read(...head, ' 0  1.0  2.0', 'done', ' 0  1.0  2.0')).toEqual([]);
    expect(read(...head, '  3.5   4.5')).toEqual([]);
  });
});

describe('lines of trainings', () => {
  it.each(rowsOf(ofTrainings))('%j', (line, figures) => {
    expect(read(line)).toEqual(figures.split('; '));
  });

  it.each(ofNothing.slice(1).replaceAll('\n', '').split('·'))('none in %j', (line) => {
    expect(read(line)).toEqual([]);
  });

  // In squares of their length these would take minutes.
  it.each([
    ['of steps', 'step 1 '.repeat(50_000)],
    ['of digits', `step 1 ${'1'.repeat(500_000)}`],
    ['of steps and digits', 'step 1 '.repeat(50_000) + '1'.repeat(500_000)],
    ['of dots', `iter 1, 1 sec, ${'1.'.repeat(250_000)}`],
    ['of prefixes', '[0] '.repeat(100_000)],
    ['of thousands', `loss ${'1,000'.repeat(100_000)}`],
    ['of words', 'a_'.repeat(250_000)],
    ['of escapes', '\u001b['.repeat(250_000)],
    ['before a figure', `${'x '.repeat(2500)}loss 3`],
  ])('none in a long line %s', (_, line) => {
    expect(read(line)).toEqual([]);
  });
});
