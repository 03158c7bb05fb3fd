// The run as tables, for a terminal or as Markdown to paste into README.md beside this file.
import { median } from 'simple-statistics';
import { evaluateAll, machinesOf, sideBySide } from './machines.js';
import { medianOf, placeText, sizeText } from './targets.js';

/** @typedef {{title: string, head: string[], keys: number, shown?: number[], rows: string[][]}} Table keys: columns that say what
 *   a row is about; shown: columns that are shown of several machines, all that are no keys when absent */

const labels = {
  'gradlink-plain': 'gradlink',
  'gradlink-shared': 'allocShared',
  'gradlink-openmpi': 'over Open MPI',
  'gradlink-openmpi-flat': 'over Open MPI, flat',
  'gradlink-mpich': 'over MPICH',
  'gradlink-mpich-flat': 'over MPICH, flat',
  openmpi: 'Open MPI',
  'openmpi-tuned': 'best tuned',
  'openmpi-xhc': 'Open MPI, XHC',
  mpich: 'MPICH',
  ucc: 'UCC',
  deepspeed: 'DeepSpeed',
  sglang: 'sglang',
  vllm: 'vLLM',
  osu: 'OSU',
  gloo: 'Gloo',
};

function timeText(seconds) {
  if (seconds === undefined) return '–';
  if (seconds < 1e-3) return `${(seconds * 1e6).toPrecision(3)} us`;
  return `${(seconds * 1e3).toPrecision(3)} ms`;
}

const gbPerSecond = (bytes, seconds) =>
  seconds === undefined ? '–' : (bytes / seconds / 1e9).toFixed(2);

const ratio = (theirs, ours) =>
  theirs === undefined || ours === undefined ? '–' : (theirs / ours).toFixed(2);

const unique = (values) => [...new Set(values)];

/** Times of everybody, and each peer's over ours, for one number of ranks. */
function processesTable({ records }, ranks) {
  const mine = records.filter((r) => r.ranks === ranks && r.contender in labels);
  const present = Object.keys(labels).filter((id) => mine.some((r) => r.contender === id));
  const peers = present.filter((id) => !id.startsWith('gradlink'));
  const rows = unique(mine.map((r) => r.bytes))
    .sort((a, b) => a - b)
    .flatMap((bytes) =>
      ['in', 'out'].map((place) => {
        const time = (id) => medianOf(records, id, ranks, bytes, place);
        return [
          sizeText(bytes),
          placeText[place],
          ...present.map((id) => timeText(time(id))),
          ...peers.map((id) => ratio(time(id), time('gradlink-plain'))),
        ];
      }),
    );
  const head = [
    ...['size', 'place'],
    ...present.map((id) => labels[id]),
    ...peers.map((id) => `${labels[id]} / ours`),
  ];
  // Of several machines ours and the ratios: the rest would not fit beside each other.
  const shown = head
    .map((_, i) => i)
    .filter((i) => head[i] === 'gradlink' || / ours$/.test(head[i]));
  return {
    title: `allReduce, float32 sum, ${ranks} processes: median time of a call, and the peer's time over ours`,
    head,
    keys: 2,
    shown,
    rows,
  };
}

/** Averages with one neighbour a call beside the same engine's all-reduce. */
function neighborsTable({ records }) {
  const mine = records.filter((r) => r.contender === 'gradlink-plain-neighbors');
  const rows = unique(mine.map((r) => r.bytes)).flatMap((bytes) =>
    ['in', 'out'].map((place) => {
      const of = (id) => medianOf(records, id, 4, bytes, place);
      const [plain, shared, mpi] = ['gradlink-plain', 'gradlink-shared', 'openmpi'].map((id) =>
        of(`${id}-neighbors`),
      );
      return [
        ...[sizeText(bytes), placeText[place], timeText(plain), timeText(shared), timeText(mpi)],
        ...[ratio(of('gradlink-plain-calls'), plain), ratio(of('gradlink-shared-calls'), shared)],
        ...['plain', 'shared'].map((m) => ratio(of(`bare-${m}-calls`), of(`bare-${m}-neighbors`))),
        ...[ratio(mpi, plain), ratio(mpi, shared)],
      ];
    }),
  );
  const head = ['size', 'place', 'gradlink', 'allocShared', 'Open MPI'];
  return {
    title: 'Average with one neighbour a call, each call another, float32, 4 processes',
    head: [
      ...head,
      ...['all-reduce / ours', 'allocShared all-reduce / ours'],
      ...['of bare loops', 'of bare loops, allocShared'],
      ...['Open MPI / ours', 'Open MPI / allocShared'],
    ],
    keys: 2,
    shown: [2, 5, 9],
    rows,
  };
}

/** Messages between two processes, beside each MPI's. */
function messagesTable({ records }) {
  const mine = records.filter((r) => r.contender === 'gradlink-messages');
  const rows = unique(mine.map((r) => r.bytes)).flatMap((bytes) =>
    ['latency', 'bandwidth'].map((kind) => {
      const [ours, openMpi, mpich] = ['gradlink', 'openmpi', 'mpich'].map((id) =>
        medianOf(records, `${id}-messages`, 2, bytes, kind),
      );
      return [
        ...[sizeText(bytes), kind, timeText(ours), timeText(openMpi), timeText(mpich)],
        ...[ratio(openMpi, ours), ratio(mpich, ours)],
      ];
    }),
  );
  return {
    title: 'Messages between 2 processes: median time of one, alone and in a window of 64',
    head: ['size', 'kind', 'gradlink', 'Open MPI', 'MPICH', 'Open MPI / ours', 'MPICH / ours'],
    keys: 2,
    shown: [2, 5, 6],
    rows,
  };
}

/** A push and a pull of one array, and the pairs of small ones. */
function storesTable({ records }) {
  const mine = records.filter((r) => r.contender === 'dist_sync');
  const rows = unique(mine.filter((r) => r.place === 'store').map((r) => r.bytes)).map((bytes) => {
    const [ours, shared, theirs] = ['dist_sync', 'dist_sync-shared', 'ps-lite'].map((id) =>
      medianOf(records, id, 1, bytes, 'store'),
    );
    return [
      ...[sizeText(bytes), timeText(ours), timeText(shared), timeText(theirs)],
      ...[ratio(theirs, ours), ratio(theirs, shared), gbPerSecond(4 * bytes, ours)],
    ];
  });
  const pairs = mine.filter((r) => r.place === 'pairs').map((r) => r.bytes);
  for (const bytes of unique(pairs)) {
    const [ours, shared] = ['dist_sync', 'dist_sync-shared'].map((id) =>
      medianOf(records, id, 1, bytes, 'pairs'),
    );
    rows.push([
      ...[`${sizeText(bytes)}, of many`, timeText(ours), timeText(shared)],
      ...['–', '–', '–', gbPerSecond(4 * bytes, ours)],
    ]);
  }
  return {
    title: 'A push and a pull of one float32 array, 1 worker and 1 server',
    head: [
      ...['size', 'dist_sync', 'allocShared', 'ps-lite'],
      ...['ps-lite / ours', 'ps-lite / allocShared', 'GB/s read + written'],
    ],
    keys: 1,
    shown: [1, 4],
    rows,
  };
}

function localTable({ records }) {
  const local = records.filter((r) => r.contender === 'local');
  const key = (r) => `${r.ranks} ${r.bytes} ${r.place}`;
  const first = unique(local.map(key)).map((wanted) => local.find((r) => key(r) === wanted));
  return {
    title: 'Communicator.local(k).allReduce beside the same reads and writes as a bare loop',
    head: ['ranks', 'size', 'place', 'allReduce', 'loop', 'loop / ours', 'GB/s read + written'],
    keys: 3,
    shown: [3, 5],
    rows: first.map(({ ranks, bytes, place }) => {
      const [ours, loop] = ['local', 'loop'].map((id) =>
        medianOf(records, id, ranks, bytes, place),
      );
      return [
        ...[String(ranks), sizeText(bytes), placeText[place]],
        ...[timeText(ours), timeText(loop), ratio(loop, ours)],
        gbPerSecond(2 * ranks * bytes, ours),
      ];
    }),
  };
}

function memoryTable({ memory }) {
  return {
    title: 'Memory bandwidth of the machine, native loops',
    head: ['loop', 'threads', 'size of an array', 'time', 'GB/s read + written'],
    keys: 3,
    shown: [4],
    rows: memory.map(({ name, threads, bytes, movedBytes, seconds }) => {
      const time = median(seconds);
      const moved = gbPerSecond(movedBytes, time);
      return [name, String(threads), sizeText(bytes), timeText(time), moved];
    }),
  };
}

function targetsTable(runs, names) {
  const words = new Map([
    [true, 'reached'],
    [false, 'NOT reached'],
    [null, '–'],
  ]);
  const one = runs.length === 1;
  // Who asked for a case does not ask for the targets of the others.
  const partial = runs.every(({ pattern }) => typeof pattern === 'string');
  const asked = evaluateAll(runs).filter(
    ({ each }) => !partial || each.some(({ value }) => value !== null),
  );
  const valueText = (value) => (value === null ? '–' : value.toPrecision(3));
  const details = (each) =>
    one
      ? each[0].detail
      : each
          .map(({ detail }, i) => (detail === '' ? '' : `${names[i]}: ${detail}`))
          .filter(Boolean)
          .join('; ');
  return {
    title: one
      ? 'Targets (of several sizes and places, the worst)'
      : 'Targets (of several sizes and places, the worst; reached where it holds on every machine)',
    head: ['target', 'wanted', ...(one ? ['measured'] : names), '', 'where'],
    rows: asked.map(({ target, wanted, each, reached }) => [
      ...[target, wanted, ...each.map(({ value }) => valueText(value))],
      ...[words.get(reached), details(each)],
    ]),
  };
}

function waiversTable({ waivers }) {
  return {
    title: 'Waived, failed, late and left out',
    head: ['who', 'what', 'how', 'why'],
    keys: 4,
    rows: waivers.map(({ contender, case: what, kind, reason }) => [
      ...[contender, kind === 'waived' ? 'all' : what, kind, reason.split('\n')[0]],
    ]),
  };
}

function tunedTable({ tuned }) {
  return {
    title: 'What "best tuned" was',
    head: ['size', 'place', 'algorithm'],
    keys: 2,
    rows: tuned.map(({ bytes, place, label }) => [sizeText(bytes), placeText[place], label]),
  };
}

function machinesTable(machines) {
  return {
    title: 'Machines',
    head: ['', 'machine'],
    rows: machines.map(({ letter, text: described }) => [letter, described]),
  };
}

const ranksOf = ({ records }) =>
  unique(records.filter((r) => r.contender in labels).map((r) => r.ranks));

/**
 * @param {object[]} runs one of each machine; several are shown side by side
 * @param {'text' | 'markdown'} format
 */
export function tablesOf(runs, format) {
  const machines = machinesOf(runs);
  const names = machines.map(({ letter }) => letter);
  const one = runs.length === 1;
  const ranks = unique(runs.flatMap(ranksOf)).sort((a, b) => a - b);
  const makers = [
    memoryTable,
    localTable,
    ...ranks.map((n) => (run) => processesTable(run, n)),
    neighborsTable,
    messagesTable,
    storesTable,
    tunedTable,
  ];
  const compared = makers.map((make) => (one ? make(runs[0]) : sideBySide(runs.map(make), names)));
  const waived = runs.map((run, i) => {
    const table = waiversTable(run);
    return one ? table : { ...table, title: `${table.title}, machine ${names[i]}` };
  });
  const tables = [machinesTable(machines), ...compared, targetsTable(runs, names), ...waived];
  return tables
    .filter(({ rows }) => rows.length > 0)
    .map(format === 'markdown' ? markdown : text)
    .join('\n');
}

function text({ title, head, rows }) {
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i].length)));
  const line = (row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i]))
      .join('  ')
      .trimEnd();
  return [title, ...[head, ...rows].map((row) => `  ${line(row)}`), ''].join('\n');
}

function markdown({ title, head, rows }) {
  const line = (row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const rule = line(head.map(() => '---'));
  return [`### ${title}`, '', line(head), rule, ...rows.map(line), ''].join('\n');
}
