// The commands, in the order of the help. A new one is a file beside this and a line here. Each is loaded when it is
// needed: `gradlink doctor` shall not wait for what only a report draws with.
import type { Register } from './register.js';

/** By name, how each is loaded. */
export type Commands = Readonly<Record<string, () => Promise<Register>>>;

export const commands: Commands = {
  check: async () => (await import('./check.js')).registerCheck,
  measure: async () => (await import('./measure/measure.js')).registerMeasure,
  collectives: async () => (await import('./collectives/collectives.js')).registerCollectives,
  pairs: async () => (await import('./pairs.js')).registerPairs,
  p2p: async () => (await import('./p2p.js')).registerP2p,
  ddp: async () => (await import('./ddp.js')).registerDdp,
  train: async () => (await import('./train/train.js')).registerTrain,
  models: async () => (await import('./models.js')).registerModels,
  doctor: async () => (await import('./doctor.js')).registerDoctor,
  topo: async () => (await import('./doctor.js')).registerTopo,
  report: async () => (await import('./reports/report.js')).registerReport,
  watch: async () => (await import('./reports/watch.js')).registerWatch,
  compare: async () => (await import('./reports/compare.js')).registerCompare,
  baseline: async () => (await import('./reports/baseline.js')).registerBaseline,
  predict: async () => (await import('./predict/predict.js')).registerPredict,
  launch: async () => (await import('./launch/launch.js')).registerLaunch,
  serve: async () => (await import('./serve.js')).registerServe,
  build: async () => (await import('./build.js')).registerBuild,
  completion: async () => (await import('./completion.js')).registerCompletion,
};

/** What offers the other commands too. */
const needsAll: ReadonlySet<string> = new Set(['completion']);
const needsNone: ReadonlySet<string> = new Set(['-v', '--version']);

/** The command that was typed, or all where it takes all to help: no command, a misspelt one, `help`. */
export function commandsFor(argv: readonly string[], table: Commands): Promise<Register[]> {
  const [name = ''] = argv;
  if (needsNone.has(name)) return Promise.resolve([]);
  const one = Object.hasOwn(table, name) && !needsAll.has(name);
  const wanted = one ? [table[name]!] : Object.values(table);
  return Promise.all(wanted.map((load) => load()));
}
