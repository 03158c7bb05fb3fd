// `gradlink predict`: what more workers would give.
import { exitCodes, type Io } from '../io.js';
import { addPredictOptions, type PredictOptions } from './predict-options.js';
import { readable, readRuns } from '../reports/read-runs.js';
import type { Register } from '../register.js';
import { checkOutput, outputFormat } from '../reports/report-output.js';
import { asUsage, UsageError } from '../usage-error.js';
import { Baselines } from '../../compare/index.js';
import { writeFileAtomic } from '../../files/index.js';
import { elementsOf, network } from '../../models/index.js';
import {
  linkOfSweep,
  plainLink,
  predict,
  publishedTables,
  schemes,
  validatePublished,
  validateSweep,
  type Link,
  type MeasuredLink,
  type Validation,
  type Workload,
} from '../../predict/index.js';
import { mostWorkers } from '../../predict/reach.js';
import { writeText } from '../terminal/terminal.js';
import { renderPrediction, renderValidations, type PredictionFormat } from '../../report/index.js';
import { readInput } from '../../results/input-file.js';
import { parseJson } from '../../files/json-text.js';
import { elementBytes, parseDType } from '../../tensor/dtype.js';

const byEnding: Readonly<Record<string, PredictionFormat>> = {
  '.json': 'json',
  '.md': 'markdown',
  '.txt': 'text',
};

const usualWorkers = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000] as const;
/** A backward pass computes two products where the forward pass computes one. */
const forwardShare = 1 / 3;

function measuredLink(run: string, io: Io): MeasuredLink {
  const { reports } = readRuns(run, new Baselines(io.env));
  const cases = reports.flatMap((report) => report.cases);
  return asUsage(() => linkOfSweep({ ...reports[0]!, cases }, run));
}

function insideLink(run: string | undefined, { link }: PredictOptions, io: Io): Link {
  if (run !== undefined && link !== undefined) {
    throw new UsageError('Give either RUN or --link, not both.');
  }
  if (run !== undefined) return measuredLink(run, io);
  if (link !== undefined) return plainLink(...link);
  throw new UsageError(
    'Give RUN, a sweep, or --link. ' +
      'gradlink collectives all_reduce -b 1K -e 16M -f 2 -n 2 --output run.json measures a sweep.',
  );
}

function betweenLink(options: PredictOptions, io: Io): Link | undefined {
  const { between, betweenLink: given, perHost } = options;
  if (between !== undefined && given !== undefined) {
    throw new UsageError('Give either --between or --between-link, not both.');
  }
  if (between === undefined && given === undefined) return undefined;
  if (perHost === undefined) {
    throw new UsageError('A link between hosts needs --per-host, the workers of a host.');
  }
  return between === undefined ? plainLink(...given!) : measuredLink(between, io);
}

function computeSeconds(options: PredictOptions): readonly [forward: number, backward: number] {
  const { forward, backward, compute } = options;
  if (compute !== undefined && forward === undefined && backward === undefined) {
    return [(compute / 1e3) * forwardShare, (compute / 1e3) * (1 - forwardShare)];
  }
  if (compute === undefined && forward !== undefined && backward !== undefined) {
    return [forward / 1e3, backward / 1e3];
  }
  throw UsageError.of(
    '--compute',
    'either --compute, or --forward and --backward',
    [...Object.entries({ compute, forward, backward })]
      .filter(([, value]) => value !== undefined)
      .map(([name]) => `--${name}`)
      .join(' and ') || 'none of them',
    "Give the milliseconds of one worker's step, as gradlink train or your program measures them.",
  );
}

function gradientBytes(options: PredictOptions): readonly number[] {
  const { gradients } = options;
  if (gradients === undefined) {
    const { numLayers, imageShape, numClasses, dtype } = options;
    const described = asUsage(() =>
      network(options.network, {
        numClasses,
        ...(numLayers === undefined ? {} : { numLayers }),
        ...(imageShape === undefined ? {} : { imageShape }),
      }),
    );
    const width = elementBytes[parseDType(dtype)] ?? 1;
    return described.parameters.map(({ shape }) => elementsOf(shape) * width);
  }
  const expected = 'a file with a JSON array of bytes above 0';
  const wrong = (got: string): UsageError =>
    UsageError.of('--gradients', expected, `${gradients}: ${got}`);
  const value = parseJson(
    readable('--gradients', () => readInput(gradients, expected)),
    wrong,
  );
  const isSize = (one: unknown): one is number => Number.isSafeInteger(one) && Number(one) > 0;
  if (!Array.isArray(value) || value.length === 0 || !value.every(isSize))
    throw wrong('other JSON');
  return value;
}

function workloadOf(options: PredictOptions): Workload {
  const [forwardSeconds, backwardSeconds] = computeSeconds(options);
  return {
    gradientBytes: gradientBytes(options),
    forwardSeconds,
    backwardSeconds,
    sigmaSeconds: options.sigma / 1e3,
    bucketBytes: options.bucketCap,
    overlap: options.overlap,
  };
}

/** The usual ones that fill their hosts, as far as the links reach. */
function defaultWorkers(perHost: number | undefined, most: number): number[] {
  const usual = usualWorkers.filter((count) => count <= most);
  if (perHost === undefined) return usual;
  return usual.filter((count) => count <= perHost || count % perHost === 0);
}

function givenWorkers({ workers, hosts, perHost }: PredictOptions): readonly number[] | undefined {
  if (hosts === undefined) return workers;
  if (workers !== undefined) throw new UsageError('Give either --workers or --hosts, not both.');
  if (perHost === undefined) {
    throw new UsageError('--hosts needs --per-host, the workers of a host.');
  }
  return hosts.map((count) => count * perHost);
}

function forecast(
  run: string | undefined,
  options: PredictOptions,
  io: Io,
): ReturnType<typeof predict> {
  const inside = insideLink(run, options, io);
  const between = betweenLink(options, io);
  const { perHost, servers, rails } = options;
  const reach = mostWorkers({ inside, ...(between === undefined ? {} : { between }) });
  return asUsage(() =>
    predict({
      workload: workloadOf(options),
      batchSize: options.batchSize,
      workers: givenWorkers(options) ?? defaultWorkers(perHost, reach),
      inside,
      ...(between === undefined ? {} : { between }),
      ...(perHost === undefined ? {} : { perHost }),
      ...(servers === undefined ? {} : { servers }),
      ...(rails === undefined ? {} : { rails }),
      schemes: options.schemes ?? schemes,
      ...('ranks' in inside ? { measuredWorkers: (inside as MeasuredLink).ranks } : {}),
    }),
  );
}

function validate(run: string | undefined, options: PredictOptions, io: Io): Validation[] {
  const wanted = options.validate;
  const tables = publishedTables.filter((table) => wanted === 'all' || wanted === table);
  const own = wanted === 'own' || (wanted === 'all' && run !== undefined);
  if (own && run === undefined) {
    throw new UsageError('--validate own needs RUN, a sweep.');
  }
  const sweeps = own ? [validateSweep(run!, measuredLink(run!, io).points)] : [];
  return [...tables.flatMap(validatePublished), ...sweeps];
}

export const registerPredict: Register = (program, io, done) => {
  const command = program
    .command('predict')
    .description('forecast step time, speedup and efficiency with more workers')
    .argument('[run]', 'sweep between workers of a host: a report, or the name of a baseline');
  addPredictOptions(command).action((run: string | undefined, options: PredictOptions) => {
    const format = outputFormat(options, byEnding, 'text');
    if (options.output !== undefined) checkOutput(options.output);
    let passed = true;
    let text: (room?: number) => string;
    if (options.validate === undefined) {
      const predicted = forecast(run, options, io);
      text = (room) => renderPrediction(predicted, format, options.all === true, room);
    } else {
      const found = validate(run, options, io);
      passed = found.every((one) => one.passed);
      text = (room) => renderValidations(found, format, room);
    }
    if (options.output === undefined) writeText(text, format === 'text', io);
    else writeFileAtomic(options.output, [text()]);
    done(passed ? exitCodes.ok : exitCodes.failure);
  });
};
