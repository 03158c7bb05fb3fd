#!/usr/bin/env node
// lib/ -> dist/ with esbuild, in about a second. What is in dist/ here is what is packed, so that what is tested is what
// is shipped.
//
//   node scripts/bundle.mjs [--if-stale] [--types] [--unchecked]
//
// --types: the declarations too, into dist/types, which only those who install the package and the linters look at: they
// take tsc ten times as long. --unchecked: in half of that, for the linters, who have checked the types already. They are
// not kept for packing, since tsc orders unions by what it has checked before.
//
// dist/index.js is the whole of `import 'gradlink'` in one file, since each file that Node opens costs about a
// millisecond. What it holds must not exist a second time in a process (the class of errors, the loaded addon, leases of
// arrays): the other entries take those modules from it, under one name that no type declares.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { licenses } from './licenses.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lib = join(root, 'lib');
const lab = join(root, 'lab');
const dist = join(root, 'dist');
const stamp = join(dist, '.built');

/** Entries of their own beside index.js; they share what several of them need in further files. */
const entries = {
  decentralised: 'optimizers/decentralised/index.ts',
  measure: 'measure/index.ts',
  models: 'models/index.ts',
  topology: 'topology/index.ts',
  tfjs: 'train/index.ts',
  cli: 'cli/main.ts',
  'probe-main': 'doctor/probe-main.ts',
  'doctor-host': 'doctor/hosts/main.ts',
  internal: '../lab/internal.ts',
};
/** Nothing but other people's code, and most of the bytes: the files that are made smaller. */
const libraries = { vega: 'report/charts/vega.ts' };
/** Runs beside every process of a job: one small file that loads nothing else. */
const alone = { 'launch-rank': 'cli/launch/rank.ts' };

/** They load TensorFlow.js at their top, so that what bundles measure.js must not find the way to them. */
const unbundled = ['lib/measure/train/rank.ts', 'lib/measure/ddp/model.ts'];

/** The name under which index.js hands its modules to the other entries. */
const shared = '__modules';

const common = {
  absWorkingDir: root,
  bundle: true,
  write: false,
  metafile: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  outdir: dist,
  charset: 'utf8',
  // Their texts are in THIRD-PARTY-LICENSES.txt.
  legalComments: 'none',
  logLevel: 'warning',
  // A sixth of what is installed was indentation. Names stay, so that stacks can be read.
  minifyWhitespace: true,
  // Node shows the line on which an error was thrown, whole.
  lineLimit: 120,
  minifySyntax: true,
  // Optional peers: where the user's program has them, and never a second copy.
  external: ['@tensorflow/*'],
};

function filesUnder(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** What dist/ is made of. Contents and not times: a checkout of another branch may bring older files. */
function fingerprint() {
  const hash = createHash('sha256');
  const others = [
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.types.json',
    'scripts/bundle.mjs',
    'scripts/licenses.mjs',
  ];
  const labs = filesUnder(lab).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
  const sources = [
    ...filesUnder(lib).sort(),
    ...labs.sort(),
    ...others.map((file) => join(root, file)),
  ];
  for (const file of sources) {
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  }
  return hash.digest('hex');
}

/** Each module of lib/ that ends up in index.js, with the names it exports. */
async function indexModules(esbuild) {
  const first = await esbuild.build({ ...common, entryPoints: [join(lib, 'index.ts')] });
  const files = Object.keys(first.metafile.inputs).filter((file) => file.startsWith('lib/'));
  // As entries of their own, esbuild tells what each exports, `export *` followed.
  const each = await esbuild.build({ ...common, entryPoints: files, outbase: root });
  const exported = new Map();
  for (const { entryPoint, exports } of Object.values(each.metafile.outputs)) {
    // One of types alone has none, and is nothing at run time.
    if (entryPoint !== undefined && exports.length > 0) exported.set(entryPoint, exports);
  }
  return exported;
}

function buildIndex(esbuild, modules) {
  const files = [...modules.keys()].filter((file) => file !== 'lib/index.ts');
  const contents = [
    `export * from './index.js';`,
    ...files.map((file, i) => `import * as m${i} from ${JSON.stringify(join(root, file))};`),
    `export const ${shared} = { ${files.map((file, i) => `${JSON.stringify(file)}: m${i}`).join(', ')} };`,
  ].join('\n');
  return esbuild.build({
    ...common,
    stdin: { contents, resolveDir: lib, sourcefile: 'entry-of-index.ts', loader: 'ts' },
    entryNames: 'index',
  });
}

/** Turns an import of a module that index.js holds into one of index.js. */
function fromIndex(modules) {
  return {
    name: 'from-index',
    setup(build) {
      build.onResolve({ filter: /^\.{1,2}\/.*\.js$/ }, ({ path, resolveDir, namespace }) => {
        if (namespace !== 'file' || ![lib, lab].some((folder) => resolveDir.startsWith(folder)))
          return undefined;
        const file = relative(root, resolve(resolveDir, path)).replace(/\.js$/, '.ts');
        if (!modules.has(file) || file === 'lib/index.ts') return undefined;
        // Without side effects: an import of types alone leaves nothing behind.
        return { path: file, namespace: 'index', sideEffects: false };
      });
      build.onResolve({ filter: /^\.\/vega\.js$/ }, ({ path }) => ({ path, external: true }));
      build.onResolve({ filter: /^gradlink:index$/ }, () => ({
        path: './index.js',
        external: true,
      }));
      build.onLoad({ filter: /.*/, namespace: 'index' }, ({ path }) => ({
        contents: [
          `import { ${shared} } from 'gradlink:index';`,
          `const module = /* @__PURE__ */ (() => ${shared}[${JSON.stringify(path)}])();`,
          ...modules.get(path).map((name) => `export const ${name} = module.${name};`),
        ].join('\n'),
      }));
    },
  };
}

/** Packages in CommonJS ask for Node's own modules with `require`, which a module does not have. */
const requireOfNode = {
  js: [
    `import { createRequire as __createRequire } from 'node:module';`,
    `const require = __createRequire(import.meta.url ?? process.cwd() + '/');`,
  ].join('\n'),
};

function inputs(entries) {
  return Object.fromEntries(Object.entries(entries).map(([out, file]) => [out, join(lib, file)]));
}

/** esbuild calls a class that names itself `_Name` inside; stacks and prints show that name. */
function withOwnNames(text) {
  const renamed = [...text.matchAll(/\b([A-Za-z]\w*) ?= ?class _\1\b/g)].map(([, name]) => name);
  return renamed.reduce(
    (all, name) => all.replaceAll(new RegExp(`(?<![\\w$.])_${name}\\b`, 'g'), name),
    text,
  );
}

/** Writes what is new, and takes away what an earlier build left. */
function write(files) {
  const wanted = new Set(files.map(({ path }) => path));
  mkdirSync(dist, { recursive: true });
  for (const { path, text } of files) writeFileSync(path, withOwnNames(text));
  for (const file of filesUnder(dist)) {
    if (!wanted.has(file) && !relative(dist, file).startsWith('types/')) rmSync(file);
  }
}

/** Hides the imports of {@link unbundled} from who bundles the output; Node finds them as before. */
function hide(outputs, metafile) {
  const hidden = Object.entries(metafile.outputs)
    .filter(([, { entryPoint }]) => unbundled.includes(entryPoint))
    .map(([path]) => basename(path));
  if (hidden.length < unbundled.length) throw new Error(`no output for ${unbundled.join(', ')}`);
  return outputs.map(({ path, text }) => ({
    path,
    text: hidden.reduce(
      (all, name) =>
        all.replaceAll(`import("./${name}")`, `import(new URL("./${name}", import.meta.url).href)`),
      text,
    ),
  }));
}

function isFresh(file, wanted) {
  const asked = process.argv.includes('--if-stale');
  return asked && existsSync(file) && readFileSync(file, 'utf8').trim() === wanted;
}

function declare(wanted) {
  const types = join(dist, 'types');
  const made = join(types, '.built');
  if (isFresh(made, wanted)) return;
  rmSync(types, { recursive: true, force: true });
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const unchecked = process.argv.includes('--unchecked');
  const { status } = spawnSync(
    process.execPath,
    [tsc, '-p', 'tsconfig.types.json', ...(unchecked ? ['--noCheck'] : [])],
    { cwd: root, stdio: ['ignore', 2, 2] },
  );
  if (status !== 0) throw new Error('tsc failed; see above.');
  if (!unchecked) writeFileSync(made, `${wanted}\n`);
}

async function bundle(wanted) {
  if (isFresh(stamp, wanted)) return;
  let esbuild;
  try {
    esbuild = await import('esbuild');
  } catch (cause) {
    throw new Error('esbuild is missing: run "npm ci" first.', { cause });
  }
  const started = performance.now();
  const modules = await indexModules(esbuild);
  const builds = await Promise.all([
    buildIndex(esbuild, modules),
    esbuild.build({
      ...common,
      entryPoints: inputs(entries),
      splitting: true,
      // Beside the entries, so that a path relative to the file means the same in all of them.
      chunkNames: 'chunk-[hash]',
      plugins: [fromIndex(modules)],
      banner: requireOfNode,
    }),
    esbuild.build({ ...common, entryPoints: inputs(alone) }),
    esbuild.build({
      ...common,
      entryPoints: inputs(libraries),
      minify: true,
      banner: requireOfNode,
    }),
  ]);
  const outputs = builds.flatMap(({ outputFiles }) => outputFiles);
  const texts = licenses(
    root,
    builds.flatMap(({ metafile }) => Object.keys(metafile.inputs)),
  );
  write([
    ...hide(outputs, builds[1].metafile),
    { path: join(dist, 'THIRD-PARTY-LICENSES.txt'), text: texts },
    { path: stamp, text: `${wanted}\n` },
  ]);
  const bytes = outputs.reduce((sum, { contents }) => sum + contents.length, 0);
  const seconds = (performance.now() - started) / 1000;
  console.error(
    `dist/: ${outputs.length} files, ${(bytes / 1e6).toFixed(2)} MB, in ${seconds.toFixed(1)} s`,
  );
}

try {
  const wanted = fingerprint();
  await bundle(wanted);
  if (process.argv.includes('--types')) declare(wanted);
} catch (error) {
  // A half-written dist/ must not pass for a whole one.
  if (existsSync(stamp) && statSync(stamp).isFile()) rmSync(stamp);
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
