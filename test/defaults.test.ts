// What the comments of options say they are when absent is what the code falls back to.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { native } from '../lib/native/load.js';
import { openingOptions } from '../lib/kvstore/store-options.js';
import { defaultTimeoutMs } from '../lib/time.js';

const lib = join(import.meta.dirname, '../lib');
const sources = readdirSync(lib, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.startsWith('cli/'))
  .map((file) => readFileSync(join(lib, file), 'utf8'));
const code = sources.join('\n');

/** Of what comments and code write alike: numbers (30 000, 1/2, 8 MiB, 8 * 2 ** 20), words in quotes, true and false. */
function valueOf(text: string): unknown {
  const plain = text
    .trim()
    .replace(/(?<=\d)[ ,_](?=\d{3}\b)/g, '')
    .replace(/ MiB$/, ' * 2 ** 20')
    .replaceAll('`', '');
  if (/^'[^']*'$|^(?:true|false)$/.test(plain.toLowerCase())) return plain.toLowerCase();
  if (!/^[-\d. */e]+$/.test(plain)) return undefined;
  const product = plain.split(/ \* /).map((factor) => {
    const [base = NaN, power = 1] = factor.split(/ \*\* /).map(Number);
    const [over, under = 1] = factor.split('/').map(Number);
    return factor.includes('/') ? over! / under : base ** power;
  });
  return product.reduce((all, one) => all * one, 1);
}

const constants = new Map(
  [...code.matchAll(/\bconst (\w+)(?:: \w+)? = ([^;\n]+);/g)].map(([, name, value]) => [
    name,
    value,
  ]),
);
const resolved = (text: string): unknown => valueOf(constants.get(text.trim()) ?? text);

/** What comments say of each option of that name. */
function documented(): Map<string, Set<unknown>> {
  const found = new Map<string, Set<unknown>>();
  for (const [, comment = '', name = ''] of code.matchAll(
    /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:readonly )?(\w+)\?:/g,
  )) {
    const text = comment.replace(/\s*\n\s*\*\s*/g, ' ');
    const [, absent, fallback] =
      /([-\w.,'/ ]*?(?:[-\d.,/]+(?: \d{3})*(?: MiB)?|'[-\w]+'|[Tt]rue|[Ff]alse)) when absent|[Dd]efault:? ('[^']+'|[-\w./]*[\w/]|\d+)(?=[.;, ])/.exec(
        text,
      ) ?? [];
    const said = (absent ?? fallback ?? '').trim();
    const value = valueOf(
      /(?:\d[\d ,/.e-]*(?: MiB)?|'[-\w]+'|[Tt]rue|[Ff]alse)$/.exec(said)?.[0] ?? '',
    );
    if (value === undefined || said === '') continue;
    found.set(name, (found.get(name) ?? new Set()).add(value));
  }
  return found;
}

/** What code falls back to where an option of that name is absent. */
function fallbacks(name: string): Set<unknown> {
  const expression = "((?:'[^']*'|[\\w.]+)(?: \\*\\*? \\d+)*)";
  const found = (patterns: readonly string[]): unknown[] =>
    patterns
      .flatMap((pattern) => [...code.matchAll(new RegExp(pattern, 'g'))])
      .map(([, text = '']) => resolved(text))
      .filter((value) => value !== undefined);
  const used = found([
    `(?<!next\\.)\\b${name} \\?\\? ${expression}`,
    `'${name}',\\s*${expression},?\\s*\\)`,
    `[{,]\\s*${name}(?:: \\w+)? = ${expression}\\s*[,}]`,
  ]);
  // The tables of defaults that a run is spread over.
  return new Set(used.length > 0 ? used : found([`\\b${name}: ${expression},`]));
}

const kindOf = (value: unknown) => (/^(?:true|false)$/.test(String(value)) ? 'flag' : typeof value);

/** Names that code has for other things too, of which nothing can be said but that the default is among them. */
const otherwise = new Set(['arrays', 'threshold', 'warmup', 'length', 'vocabulary']);

describe('options that are absent', () => {
  const all = [...documented()].map(([name, values]) => {
    const kinds = new Set([...values].map(kindOf));
    const used = new Set([...fallbacks(name)].filter((value) => kinds.has(kindOf(value))));
    return { name, values, used };
  });
  const checked = all.filter(({ values, used }) => values.size === 1 && used.size > 0);

  it.each(checked)('$name', ({ name, values, used }) => {
    if (otherwise.has(name)) expect([...used]).toEqual(expect.arrayContaining([...values]));
    else expect(used).toEqual(values);
  });

  it('are found in the comments', () => {
    expect(checked.length).toBeGreaterThan(40);
  });

  it('are as said of every optimizer that is native', () => {
    const said = readdirSync(join(lib, 'optimizers'))
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(join(lib, 'optimizers', file), 'utf8'))
      .join('\n')
      .matchAll(/^export interface (\w+)Options [^{]*\{\n([\s\S]*?)^\}/gm);
    const definitions = new Map(
      native()
        .optimizerDefinitions()
        .map((one) => [one.name, one]),
    );
    const wrong: unknown[] = [];
    let compared = 0;
    for (const [, name = '', body = ''] of said) {
      const definition = definitions.get(name.toLowerCase());
      for (const [, text = '', option] of body.matchAll(
        /Default ('\w+'|[-\w.]*\w)[^*]*\*\/\s*(?:readonly )?(\w+)\?:/g,
      )) {
        const { fallback } = definition?.options.find((one) => one.name === option) ?? {};
        if (fallback === undefined || text.startsWith("'")) continue;
        compared += 1;
        const written = { true: 1, false: 0, null: null }[text];
        if ((written === undefined ? Number(text) : written) !== fallback)
          wrong.push([name, option, text]);
      }
    }
    expect({ wrong, enough: compared > 25 }).toEqual({ wrong: [], enough: true });
  });

  it('of a store are all known', () => {
    expect(defaultTimeoutMs).toBe(30_000);
    const store = openingOptions({}, { kind: 'device', name: 'device' }, { gpus: null } as never);
    expect(store).toEqual({
      merge: 'auto',
      peer: true,
      shardOptimizer: undefined,
      timeoutMs: 30_000,
      startTimeoutMs: 60_000,
      bigArrayBound: 1_000_000,
    });
  });
});
