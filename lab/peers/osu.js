// OSU's micro-benchmark of the all-reduce, where it is installed: beside our own program for the same MPI it shows that the
// program is no straw man.
import { answers } from './children.js';

const program = process.env['GRADLINK_PEERS_OSU'] ?? 'osu_allreduce';
const launcher = process.env['GRADLINK_PEERS_OSU_LAUNCHER'] ?? 'mpirun.openmpi';

/** `65536   35.21`: bytes and mean microseconds. */
export function osuRecord(sizes, line) {
  const [, bytes, microseconds] = /^(\d+)\s+([\d.]+)\s*$/.exec(line) ?? [];
  if (bytes === undefined || !sizes.includes(Number(bytes))) return undefined;
  return { bytes: Number(bytes), place: 'out', seconds: [Number(microseconds) / 1e6], wrong: 0 };
}

/** @type {import('./contenders.js').Contender} */
export const osu = {
  id: 'osu',
  label: 'OSU osu_allreduce',
  waived: () => {
    const advice = 'set GRADLINK_PEERS_OSU and GRADLINK_PEERS_OSU_LAUNCHER';
    if (!answers(launcher)) return `${launcher} not installed (${advice})`;
    return answers(program, ['--help'])
      ? undefined
      : `${program} not installed (OSU Micro-Benchmarks; ${advice})`;
  },
  places: ['out'],
  // Each power of two up to the next size, a thousand calls where they are short.
  calls: (bytes) => (bytes <= 8192 ? 2200 : 1100),
  programs: ({ ranks, sizes }) => {
    const root = launcher.endsWith('openmpi') ? ['--allow-run-as-root', '--oversubscribe'] : [];
    // Its data are floats, and it takes all powers of two between.
    const range = `${Math.min(...sizes)}:${Math.max(...sizes)}`;
    const memory = ['-M', String(2 * Math.max(...sizes))];
    return [
      {
        command: launcher,
        args: [...root, '-n', String(ranks), program, '-m', range, ...memory],
        record: (line) => osuRecord(sizes, line),
      },
    ];
  },
};
