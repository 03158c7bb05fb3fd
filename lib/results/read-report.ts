// Reads reports written by --format json, and results of other benchmarks.
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

/** The file's name may be long or contain newlines. */
function shortened(text: string): string {
  const plain = printable(text);
  return plain.length > 200 ? `${plain.slice(0, 199)}…` : plain;
}

/** `/cases/3 must have required property 'name'`; for a union only its first branch. */
function firstProblem(errors: readonly ErrorObject[]): string {
  const [first] = errors;
  if (first === undefined) return 'it does not fit the schema';
  const where = first.instancePath === '' ? 'it' : shortened(first.instancePath);
  return `${where} ${first.message ?? 'is wrong'}`;
}

/** The error of a report's version; undefined if it is ours. */
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
 * Parses a report from JSON, validated by the schema, or from another program's output: nccl-tests' table or JSON,
 * nvbandwidth's, OSU's tables. Their figures are taken as printed; `run.program` names the program. Control characters
 * become escapes, so that texts are safe for a terminal or a page.
 *
 * @param source of the text, for messages
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`) if the text is not JSON, not a report, of another schema version, or too
 *   large to process
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

/** Undefined if it is not JSON: it may be a table. */
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
 * Reads a report from a file.
 *
 * @throws as {@link parseReport}; TypeError (`ERR_INVALID_ARG_VALUE`) if it is not a regular file, above 128 MiB, empty
 *   or not text; GradlinkError (`ERR_SYSTEM`) if it cannot be read
 */
export function readReport(file: string): Report {
  return parseReport(readInput(file, expected), file);
}
