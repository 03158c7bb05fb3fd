// DLPerf's tables of ResNet-50 v1.5 (images per second) and BERT base (sentences per second): medians of five to seven
// runs.
import type { PublishedCurves, PublishedSeries } from './types.js';

type Row = readonly [
  framework: string,
  batchSize: number,
  on1: number,
  on8: number,
  on16: number,
  on32: number,
];

function named(model: string, rows: readonly Row[]): PublishedSeries[] {
  return rows.map(([framework, batchSize, on1, on8, on16, on32]) => ({
    name: `${model}, ${framework}, batch ${String(batchSize)}`,
    batchSize,
    throughput: { 1: on1, 8: on8, 16: on16, 32: on32 },
  }));
}

export const dlperf: PublishedCurves = {
  source: 'Oneflow-Inc/DLPerf at c89430b (January 2022)',
  machine: '4 hosts of 8 V100-SXM2-16GB, 100 Gb/s InfiniBand',
  workersPerHost: 8,
  series: [
    ...named('ResNet-50 float32', [
      ['OneFlow', 128, 397.64, 3130.34, 6260.3, 12411.97],
      ['NGC MXNet', 128, 392.24, 3006.98, 5758.49, 11331.93],
      ['NGC TensorFlow 1', 128, 362.44, 2721.98, 5099.42, 9514.64],
      ['NGC PyTorch', 128, 367.29, 2887.65, 5716.79, 10917.09],
      ['MXNet', 128, 384.19, 2556.03, 4855.34, 9579.74],
      ['TensorFlow 2', 128, 321.8, 2458.74, 4849.68, 9418.44],
      ['PyTorch', 128, 348.62, 2632.93, 5115.4, 10021.29],
      ['Paddle', 128, 352.72, 2625.38, 4895.27, 9348.17],
      ['MindSpore', 128, 369.81, 2773.82, 5483.22, 10731.78],
    ]),
    ...named('ResNet-50 mixed precision', [
      ['OneFlow', 256, 1472.72, 10629.32, 17920.4, 33141.02],
      ['NGC MXNet', 256, 1393.87, 9621.31, 16219.03, 30713.68],
      ['NGC TensorFlow 1 with XLA', 224, 1198.55, 8588.45, 14931.03, 29171.69],
      ['NGC TensorFlow 1', 224, 945.18, 6903.42, 12021.09, 24734.22],
      ['NGC PyTorch', 256, 802.9, 6154.66, 11991.94, 22551.16],
      ['MXNet', 256, 833.65, 2908.88, 5451.27, 10565.55],
      ['TensorFlow 2', 256, 1075.27, 6898, 9870.15, 19314.31],
      ['Paddle with DALI', 196, 887.17, 6862.17, 6018.46, 11617.57],
      ['MindSpore', 256, 1116, 6867.34, 12057.38, 24183.95],
    ]),
    ...named('BERT float32', [
      ['OneFlow', 32, 152.89, 1105.55, 2015.78, 3689.8],
      ['NGC TensorFlow 1', 32, 107.33, 790.03, 1404.04, 2727.9],
      ['NGC PyTorch', 32, 119.6, 921.32, 1499.4, 2885.81],
      ['Paddle', 32, 132.64, 615.12, 1116.02, 2073.6],
      ['OneFlow without clipping', 32, 153.94, 1194.48, 2181.51, 4019.45],
      ['MXNet without clipping', 32, 150.11, 1058.6, 1845.65, 3671.45],
    ]),
    ...named('BERT float32', [
      ['OneFlow', 96, 156.02, 1201.7, 2352.92, 4664.1],
      ['NGC TensorFlow 1', 48, 112.76, 855.45, 1576.88, 3089.74],
      ['NGC PyTorch', 48, 121.94, 928.01, 1584.32, 3039.3],
      ['Paddle', 96, 136.97, 868.6, 1631.36, 3167.68],
      ['OneFlow without clipping', 96, 156.25, 1234.65, 2425.97, 4799.64],
      ['MXNet without clipping', 64, 156.76, 1153.08, 2172.62, 4340.89],
    ]),
    ...named('BERT mixed precision', [
      ['OneFlow', 64, 534.72, 3399.43, 5745.56, 9911.78],
      ['NGC TensorFlow 1', 64, 183.25, 1452.59, 2653.74, 5189.07],
      ['NGC TensorFlow 1 with XLA', 64, 422.53, 3112.73, 5050.86, 9409.2],
      ['NGC PyTorch', 64, 444.51, 3251.7, 4936.92, 9331.72],
      ['Paddle', 64, 289.23, 1298.96, 1999.38, 3406.36],
      ['OneFlow without clipping', 64, 552.48, 3897.19, 6669.93, 11195.72],
      ['MXNet without clipping', 64, 473.76, 3107.1, 5723.26, 11269.14],
    ]),
    ...named('BERT mixed precision', [
      ['OneFlow', 160, 605.11, 4381.66, 8075.16, 15724.7],
      ['NGC TensorFlow 1 with XLA', 96, 468.1, 3559.8, 5960.14, 11650],
      ['NGC PyTorch', 96, 462.35, 3287.12, 5426.07, 10349.12],
      ['Paddle', 160, 309.68, 1666.54, 2969.85, 5452.35],
      ['OneFlow without clipping', 160, 613.93, 4683.36, 8777.57, 17210.63],
      ['MXNet without clipping', 128, 544.31, 3825.21, 7327.5, 14822.31],
    ]),
  ],
};
