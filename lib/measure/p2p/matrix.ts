// The cases of `gradlink p2p --matrix`: those of cuda-samples' peer test, with peer access off and on.
import type { CopyPlan, LatencyClock, P2pCase } from './cases.js';

// As in cuda-samples: the time of such a small copy is its start-up time.
const latencyBytes = 16;
const latencyLoops = 100;

function oneWay(from: number, to: number): CopyPlan {
  return { copies: [{ from, to, by: from, kernel: false }], measured: 1, figures: 'one' };
}

function bothWays(one: number, other: number): CopyPlan {
  return {
    copies: [
      { from: one, to: other, by: one, kernel: false },
      { from: other, to: one, by: other, kernel: false },
    ],
    measured: 2,
    figures: 'total',
  };
}

const all = (gpus: readonly number[]): CopyPlan[] =>
  gpus.flatMap((from) => gpus.map((to) => oneWay(from, to)));

const allAtOnce = (gpus: readonly number[]): CopyPlan[] =>
  gpus.flatMap((one) => gpus.map((other) => bothWays(one, other)));

const latencies: readonly { suffix: string; clock: LatencyClock; what: string }[] = [
  {
    suffix: 'latency',
    clock: 'gpu',
    what: `one copy of ${latencyBytes} bytes from one GPU to another, by the GPU's clock`,
  },
  {
    suffix: 'latency_cpu_issue',
    clock: 'issue',
    what: `the CPU's time to queue one copy of ${latencyBytes} bytes from one GPU to another`,
  },
  {
    suffix: 'latency_cpu_complete',
    clock: 'complete',
    what: `the CPU's time to queue one copy of ${latencyBytes} bytes from one GPU to another and see it end`,
  },
];

function casesOf(peerAccess: boolean): P2pCase[] {
  const name = peerAccess ? 'p2p_on' : 'p2p_off';
  const words = peerAccess
    ? 'peer access on'
    : 'peer access off, so that the driver stages through host memory';
  return [
    {
      name: `${name}_unidirectional`,
      what: `from one GPU to another, the sender writes; ${words}`,
      gpus: 1,
      peerAccess,
      plans: all,
    },
    {
      name: `${name}_bidirectional`,
      what: `both directions between two GPUs at once, their sum; ${words}`,
      gpus: 1,
      peerAccess,
      plans: allAtOnce,
    },
    ...latencies.map(({ suffix, clock, what }): P2pCase => ({
      name: `${name}_${suffix}`,
      what: `${what}; ${words}`,
      gpus: 1,
      peerAccess,
      latency: { bytes: latencyBytes, loops: latencyLoops, clock },
      plans: all,
    })),
  ];
}

export const p2pMatrixCases: readonly P2pCase[] = [...casesOf(false), ...casesOf(true)];
