#!/usr/bin/env node
// Prints every public name of every entry of the package, one line each, as the declarations have them: the package's
// docs/exports.md, which scripts/pack.mjs writes.
import { readFileSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import ts from 'typescript';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The entries that package.json names, with the sources whose declarations they are. */
function entries() {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([, target]) => typeof target !== 'string')
    .map(([name, { types }]) => ({
      name: name === '.' ? 'gradlink' : name.replace('.', 'gradlink'),
      source: join(root, types.replace('./dist/types/', 'lib/').replace(/\.d\.ts$/, '.ts')),
    }));
}

/** Whether only its type is exported, as with `export type { Name }`. */
function isTypeOnly(exported) {
  return (exported.declarations ?? []).some(
    (one) => ts.isExportSpecifier(one) && (one.isTypeOnly || one.parent.parent.isTypeOnly),
  );
}

function kindOf(symbol, typeOnly) {
  const kinds = [
    [ts.SymbolFlags.Class, 'class'],
    [ts.SymbolFlags.Function, 'function'],
    [ts.SymbolFlags.Interface, 'interface'],
    [ts.SymbolFlags.TypeAlias, 'type'],
    [ts.SymbolFlags.Variable, 'constant'],
  ];
  const kind = kinds.find(([flag]) => (symbol.flags & flag) !== 0)?.[1] ?? 'name';
  return typeOnly && ['class', 'function', 'constant'].includes(kind) ? 'type' : kind;
}

/** The first sentence of the documentation, links as their text. */
function sentenceOf(symbol, checker) {
  const text = ts
    .displayPartsToString(symbol.getDocumentationComment(checker))
    .replace(/\{@link ([^}\s|]+)(?:[\s|][^}]*)?\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim();
  const first = /^.*?[.:;](?= [A-Z`]|$)/.exec(text)?.[0] ?? text;
  return first.replace(/[:;]$/, '.').replaceAll('|', '\\|');
}

/** By entry and name, the example that imports it: the first one, which is the shortest to read. */
function examplesOf() {
  const folder = join(root, 'examples');
  const found = new Map();
  const sources = readdirSync(folder)
    .filter((name) => name.endsWith('.js'))
    .map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }))
    .sort((one, other) => one.text.length - other.text.length);
  for (const { name, text } of sources) {
    for (const [, names, entry] of text.matchAll(/import \{([^}]+)\} from '(gradlink[^']*)'/g)) {
      for (const one of names.split(',').map((word) => word.trim())) {
        if (!found.has(`${entry} ${one}`)) found.set(`${entry} ${one}`, name);
      }
    }
  }
  return found;
}

/** The whole file. */
export function exportsText() {
  const examples = examplesOf();
  const all = entries();
  const config = ts.readConfigFile(join(root, 'tsconfig.types.json'), (path) =>
    readFileSync(path, 'utf8'),
  );
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, root);
  const program = ts.createProgram(
    all.map(({ source }) => source),
    { ...options, noEmit: true },
  );
  const checker = program.getTypeChecker();
  const lines = [
    '# Public names',
    '',
    'Every name that an entry of the package exports. The examples are run by a test, as they stand.',
  ];
  for (const { name, source } of all) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(source));
    const symbols = checker
      .getExportsOfModule(module)
      .map((symbol) => ({
        name: symbol.name,
        typeOnly: isTypeOnly(symbol),
        symbol: symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
      }))
      .sort((one, other) => (one.name < other.name ? -1 : 1));
    lines.push('', `## ${name}`, '');
    for (const { name: own, typeOnly, symbol } of symbols) {
      const said = sentenceOf(symbol, checker);
      const example = examples.get(`${name} ${own}`);
      const shown = example === undefined ? '' : ` [Example](../examples/${example}).`;
      lines.push(
        `- \`${own}\`, ${kindOf(symbol, typeOnly)}${said === '' ? '' : `: ${said}`}${shown}`,
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.stdout.write(exportsText());
}
