// Two machines (or more) side by side: one run of each. What holds on one machine only is not reached.
import { evaluate } from './targets.js';

const letters = 'ABCDEFGH';

/** How a machine is called in columns, and what it is. */
export function machinesOf(runs) {
  return runs.map((run, i) => ({ letter: letters[i], run, text: machineText(run) }));
}

function machineText({ environment = {}, firstTouch, startedAt, finished, minutes }) {
  const {
    cpuModel = 'unknown processor',
    availableCores,
    simdLevel,
    kernel,
    nodeVersion,
  } = environment;
  const parts = [`${cpuModel}, ${availableCores ?? '?'} cores`, simdLevel, `kernel ${kernel}`];
  if (firstTouch) {
    const rate = (firstTouch.bytes / firstTouch.seconds / 1e9).toPrecision(2);
    parts.push(`first touch of memory ${rate} GB/s`);
  }
  parts.push(`Node ${nodeVersion}`, startedAt);
  if (finished === false) parts.push(`NOT FINISHED in ${minutes} minutes`);
  return parts.filter(Boolean).join(', ');
}

/**
 * The targets of several runs.
 * @returns {{target: string, wanted: string, each: {value: number | null, reached: boolean | null, detail: string}[], reached: boolean | null}[]}
 *   reached: on all of them; null where it was missed on none and could not be measured on one
 */
export function evaluateAll(runs) {
  const each = runs.map((run) => evaluate(run));
  return each[0].map(({ target, wanted }, i) => {
    const rows = each.map((targets) => targets[i]);
    const missed = rows.some(({ reached }) => reached === false);
    const unknown = rows.some(({ reached }) => reached === null);
    return {
      target,
      wanted,
      each: rows.map(({ value, reached, detail }) => ({ value, reached, detail })),
      reached: missed ? false : unknown ? null : true,
    };
  });
}

/**
 * The same table of several runs as one: rows by their keys, a column a machine for each column that is shown of several.
 * @param {{title: string, head: string[], keys: number, shown?: number[], rows: string[][]}[]} tables
 * @param {string[]} names of the machines
 */
export function sideBySide(tables, names) {
  const filled = tables.filter(({ rows }) => rows.length > 0);
  if (filled.length === 0) return tables[0];
  const { title, head, keys } = filled[0];
  const shown = [...new Set(filled.flatMap((table) => shownHeads(table)))];
  const keyOf = (row) => JSON.stringify(row.slice(0, keys));
  const rows = new Map(
    filled.flatMap((table) => table.rows.map((row) => [keyOf(row), row.slice(0, keys)])),
  );
  const cell = (table, key, name) => {
    const column = table.head.indexOf(name);
    return table.rows.find((row) => keyOf(row) === key)?.[column] ?? '–';
  };
  return {
    title,
    head: [...head.slice(0, keys), ...shown.flatMap((name) => names.map((at) => `${name}, ${at}`))],
    rows: [...rows].map(([key, first]) => [
      ...first,
      ...shown.flatMap((name) => tables.map((table) => cell(table, key, name))),
    ]),
  };
}

function shownHeads({ head, keys, shown }) {
  return shown === undefined ? head.slice(keys) : shown.map((column) => head[column]);
}
