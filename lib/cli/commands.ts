// The commands, in the order of the help. A new one is a file beside this and a line here.
import { registerBaseline } from './baseline.js';
import { registerCollectives } from './collectives.js';
import { registerCompare } from './compare.js';
import { registerDdp } from './ddp.js';
import { registerDoctor, registerTopo } from './doctor.js';
import { registerCompletion } from './completion.js';
import { registerLaunch } from './launch.js';
import { registerMeasure } from './measure.js';
import { registerModels } from './models.js';
import { registerP2p } from './p2p.js';
import { registerPredict } from './predict.js';
import type { Register } from './register.js';
import { registerReport } from './report.js';
import { registerServe } from './serve.js';
import { registerTrain } from './train.js';
import { registerWatch } from './watch.js';

export const commands: readonly Register[] = [
  registerMeasure,
  registerCollectives,
  registerP2p,
  registerDdp,
  registerTrain,
  registerModels,
  registerDoctor,
  registerTopo,
  registerReport,
  registerWatch,
  registerCompare,
  registerBaseline,
  registerPredict,
  registerLaunch,
  registerServe,
  registerCompletion,
];
