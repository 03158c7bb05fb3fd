// Reads back what --format json wrote, and what other benchmarks did.
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';

import { aString } from '../checks.js';
import { printable, printableTree } from '../printable.js';
import { foreignJson, foreignKinds, foreignText } from './foreign/index.js';
import { inputError, readInput } from './input-file.js';
import { jsonKind, parseJson } from '../files/json-text.js';
import { tooLarge } from './report-size.js';
import { schemaVersion, type Report } from './result.js';
import { reportSchema } from './schema.js';

let compiled: ValidateFunction | undefined;

function validator(): ValidateFunction {
  compiled ??= new Ajv({ allowUnionTypes: true }).compile(reportSchema);
  return compiled;
}

const expected = `a report that --format json wrote, ${foreignKinds}`;

/** A name of the file may be long, and in several lines. */
function shortened(text: string): string {
  const plain = printable(text);
  return plain.length > 200 ? `${plain.slice(0, 199)}…` : plain;
}

/** `/cases/3 must have required property 'name'`; of a union only its first branch. */
function firstProblem(errors: readonly ErrorObject[]): string {
  const [first] = errors;
  if (first === undefined) return 'it does not fit the schema';
  const where = first.instancePath === '' ? 'it' : shortened(first.instancePath);
  return `${where} ${first.message ?? 'is wrong'}`;
}

/** What is wrong with the version that a report says it has; undefined where it is ours. */
function otherVersion(version: unknown): string | undefined {
  if (version === schemaVersion) return undefined;
  const reads = `this gradlink reads ${String(schemaVersion)}`;
  if (typeof version !== 'number') return `JSON whose schemaVersion is ${jsonKind(version)}`;
  const advice =
    version > schemaVersion
      ? 'so read it with the gradlink that wrote it, or a newer one'
      : 'so run the measurement again with it';
  return `one of schema version ${String(version)}; ${reads}, ${advice}`;
}

/**
 * A report from its JSON text, checked against the schema, or from what another program wrote: nccl-tests' table or JSON,
 * nvbandwidth's, OSU's tables. Its figures are taken as they were printed; `run.program` says whose they are. Control characters in its texts become escapes, so that what
 * is made of it can be shown on a terminal and stand in a page.
 *
 * @param source where the text comes from, for messages
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`) when the text is no JSON, no report, one of another schema version, or one of
 * so many cases, parameters or samples that what is made of it would take hours
 */
export function parseReport(text: string, source: string): Report {
  aString(text, 'text');
  aString(source, 'source');
  const wrong = (why: string): Error => inputError(source, expected, why);
  const value = jsonOf(text) ?? foreignText(text) ?? parseJson(text, wrong);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrong(`JSON that is ${jsonKind(value)}, not an object`);
  }
  if (!Object.hasOwn(value, 'schemaVersion')) {
    const foreign = foreignJson(value as Readonly<Record<string, unknown>>);
    if (foreign === undefined) throw wrong('JSON without a schemaVersion');
    return checked(foreign, wrong);
  }
  const other = otherVersion((value as { readonly schemaVersion: unknown }).schemaVersion);
  if (other !== undefined) throw wrong(other);
  return checked(value, wrong);
}

/** Undefined for a text that is no JSON: it may be a table. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function checked(value: unknown, wrong: (why: string) => Error): Report {
  const validate = validator();
  if (!validate(value)) throw wrong(`JSON in which ${firstProblem(validate.errors ?? [])}`);
  const large = tooLarge(value as Report);
  if (large !== undefined) throw wrong(`JSON with ${large}`);
  return printableTree(value, () => wrong('JSON of more than 64 levels')) as Report;
}

/**
 * A report from its file.
 *
 * @throws as {@link parseReport}; TypeError (`ERR_INVALID_ARG_VALUE`) when it is no regular file, above 128 MiB, empty
 * or no text; GradlinkError (`ERR_SYSTEM`) when it cannot be read
 */
export function readReport(file: string): Report {
  return parseReport(readInput(file, expected), file);
}
