// Reads back what --format json wrote.
import { readFileSync } from 'node:fs';

import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';

import { argumentError } from '../errors.js';
import { schemaVersion, type Report } from './result.js';
import { reportSchema } from './schema.js';

let compiled: ValidateFunction | undefined;

function validator(): ValidateFunction {
  compiled ??= new Ajv({ allowUnionTypes: true }).compile(reportSchema);
  return compiled;
}

/** `/cases/3 must have required property 'name'`; of a union only its first branch. */
function firstProblem(errors: readonly ErrorObject[]): string {
  const [first] = errors;
  if (first === undefined) return 'it does not fit the schema';
  return `${first.instancePath === '' ? 'it' : first.instancePath} ${first.message ?? 'is wrong'}`;
}

/**
 * A report from its JSON text, checked against the schema.
 *
 * @param source where the text comes from, for messages
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`) when the text is no JSON, no report, or one of another schema version
 */
export function parseReport(text: string, source: string): Report {
  const wrong = (why: string): Error =>
    argumentError('ERR_INVALID_ARG_VALUE', source, 'a report that --format json wrote', {
      text: why,
    });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw wrong(`no JSON (${(error as Error).message})`);
  }
  if (typeof value !== 'object' || value === null || !('schemaVersion' in value)) {
    throw wrong('JSON without a schemaVersion');
  }
  if (value.schemaVersion !== schemaVersion) {
    throw wrong(
      `one of schema version ${String(value.schemaVersion)}; this gradlink reads ${String(schemaVersion)}, so run the measurement again with it`,
    );
  }
  const validate = validator();
  if (!validate(value)) throw wrong(`JSON in which ${firstProblem(validate.errors ?? [])}`);
  return value as Report;
}

/**
 * A report from its file.
 *
 * @throws as {@link parseReport}, and the system's error when the file cannot be read
 */
export function readReport(file: string): Report {
  return parseReport(readFileSync(file, 'utf8'), file);
}
