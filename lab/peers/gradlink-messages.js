// Our own side of run.js for messages between two ranks of `gradlink launch`: what `gradlink pairs` measures, one JSON line for
// each size and kind.
//
//   gradlink-messages.js BYTES,BYTES,... latency,bandwidth
import { runPairs } from '../../dist/measure.js';

const [sizes, kinds] = process.argv.slice(2).map((words) => words.split(','));
const { cases } = await runPairs({ kinds, sizes: sizes.map(Number) });
for (const { name, parameters, samplesSeconds, check } of cases) {
  const { bytes } = parameters;
  const record = { bytes, place: name, seconds: samplesSeconds, wrong: check.wrong };
  if (process.env['RANK'] === '0') console.log(JSON.stringify(record));
}
