// nccl-tests' split of a job's ranks into groups that run in parallel, such as the rails of hosts.
import { argumentError } from '../../errors.js';
import { WrongValue, type Kind } from '../../options/kinds.js';

type Color = (rank: number, value: number) => number;

const operations: Readonly<Record<string, Color>> = {
  AND: (rank, value) => rank & value,
  OR: (rank, value) => rank | value,
  MOD: (rank, value) => rank % value,
  DIV: (rank, value) => Math.floor(rank / value),
};
const signs: Readonly<Record<string, string>> = { '&': 'AND', '|': 'OR', '%': 'MOD', '/': 'DIV' };

const expected = 'AND, OR, MOD or DIV and a number, such as MOD:8 or AND:0x7';
const mostValue = 2 ** 31 - 1;

interface Rule {
  readonly operation: string;
  readonly value: number;
}

/** In nccl-tests' syntax: `AND 0x7`, `%8`, `DIV 0b100`; also with a colon. */
function parsed(text: string): Rule | undefined {
  const [, name = '', number = ''] =
    /^([a-z]+|[&|%/])[\s:]*(0x[\da-f]+|0b[01]+|\d+)$/i.exec(text.trim()) ?? [];
  const operation = signs[name] ?? name.toUpperCase();
  const value = number === '' ? NaN : Number(number);
  const least = operation === 'MOD' || operation === 'DIV' ? 1 : 0;
  const isRule = Object.hasOwn(operations, operation) && value >= least && value <= mostValue;
  return isRule ? { operation, value } : undefined;
}

const ruleText = ({ operation, value }: Rule): string => `${operation}:${value}`;

/** A rule in the option's syntax: `MOD:8`. */
export const splitRule: Kind<string> = {
  parse(text) {
    const rule = parsed(text);
    if (rule === undefined) throw new WrongValue(`Expected ${expected}.`);
    return ruleText(rule);
  },
  check(value, name) {
    if (typeof value !== 'string') {
      throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
    }
    if (parsed(value) === undefined) {
      throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, value);
    }
  },
};

/** Ranks of one color. */
export interface Group {
  readonly color: number;
  readonly ranks: readonly number[];
}

/** The groups of this many ranks, ordered by their first ranks. */
export function groupsOf(split: string, size: number): Group[] {
  const { operation, value } = parsed(split) ?? { operation: 'MOD', value: 1 };
  const groups = new Map<number, number[]>();
  for (let rank = 0; rank < size; rank += 1) {
    const color = operations[operation]!(rank, value);
    groups.set(color, [...(groups.get(color) ?? []), rank]);
  }
  return [...groups].map(([color, ranks]) => ({ color, ranks }));
}

/** Why these groups cannot be timed in parallel; undefined if they can. */
export function unevenGroups(groups: readonly Group[]): string | undefined {
  const sizes = [...new Set(groups.map(({ ranks }) => ranks.length))];
  return sizes.length < 2 ? undefined : `groups of ${sizes.join(' and ')} ranks`;
}
