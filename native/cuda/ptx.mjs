// The kernels' PTX, which travels compressed: it is some two megabytes of generated text that nobody reads. One file,
// {SOURCE: TEXT} as JSON under Brotli, which Node reads and writes and CMake's own archives do not need.
//
// A driver that compiles PTX takes seconds for all of it. So the addon has it in modules, of kernels that are used together.
//
//   node native/cuda/ptx.mjs FOLDER    writes FOLDER/SOURCE.ptx, and FOLDER/kernels_ptx.cc with the modules
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, constants, deflateSync } from 'node:zlib';

/** native/cuda/SOURCE.cu is what each text is made of. */
export const sources = ['kernels', 'step_kernels'];

/** @type {readonly (readonly [RegExp, string])[]} */
const groups = [
  [/^gradlinkSum(\w+)$/, 'sum$1'],
  [/^gradlinkWeighted\w*$/, 'weighted'],
  [/^gradlink(?:Decompress|Compress)\d$/, 'compression'],
  [/^gradlink(?:Copy|Chase|Spin)$/, 'diagnostics'],
  [/^gradlinkPattern$/, 'pattern'],
  [/^gradlink(\w+Squares)$/, '$1'],
  [/^gradlink(?:FoldLanes|ScaleRate)$/, 'norms'],
  [/^gradlink(\w+)$/, 'step$1'],
];

/**
 * The module that a kernel is in.
 * @param {string} kernel
 */
export function moduleOf(kernel) {
  const group = groups.find(([names]) => names.test(kernel));
  if (group === undefined) throw new Error(`${kernel} is in no module`);
  return kernel.replace(...group);
}

export const packedPtx = fileURLToPath(new URL('ptx.json.br', import.meta.url));

/** @returns {Record<string, string>} the text of each source */
export function readPtx() {
  return JSON.parse(brotliDecompressSync(readFileSync(packedPtx)).toString());
}

/** @param {Record<string, string>} texts */
export function writePtx(texts) {
  const json = Buffer.from(JSON.stringify(texts));
  const params = {
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: json.length,
  };
  writeFileSync(packedPtx, brotliCompressSync(json, { params }));
}

/**
 * The modules of a text: each has its head and the kernels that belong to it, which need nothing of one another.
 * @param {string} text
 * @returns {Map<string, {text: string, kernels: string[]}>}
 */
export function modulesOf(text) {
  const [head, ...entries] = text
    .replace(/^\s*\/\/ \.globl.*\n/gm, '')
    .split(/^(?=\.visible \.entry )/m);
  const modules = new Map();
  for (const entry of entries) {
    const kernel = /^\.visible \.entry (\w+)/.exec(entry)[1];
    const name = moduleOf(kernel);
    const module = modules.get(name) ?? { text: head, kernels: [] };
    modules.set(name, { text: module.text + entry, kernels: [...module.kernels, kernel] });
  }
  return modules;
}

const bytesText = (bytes) => [...bytes].join(',').replace(/.{120,}?,/g, '$&\n');

/** C++ with all modules, for native/cuda/kernels_ptx.h. */
function modulesInCpp() {
  const arrays = [];
  const codes = [];
  for (const [source, text] of Object.entries(readPtx())) {
    const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
    for (const [name, module] of modulesOf(text)) {
      const packed = deflateSync(Buffer.from(`${module.text}\0`), { level: 9 });
      const names = module.kernels.map((kernel) => `"${kernel}"`).join(', ');
      arrays.push(
        `const unsigned char ${name}Packed[] = {\n${bytesText(packed)}};`,
        `const char* const ${name}Kernels[] = {${names}};`,
      );
      codes.push(
        `{"${name}", {${name}Packed, sizeof ${name}Packed}, ${name}Kernels, "${source}", "${digest}"},`,
      );
    }
  }
  return `#include "cuda/kernels_ptx.h"

namespace gradlink::cuda {
namespace {
${arrays.join('\n')}
const KernelCode allKernelCodes[] = {
${codes.join('\n')}
};
}  // namespace

std::span<const KernelCode> kernelCodes() { return allKernelCodes; }

}  // namespace gradlink::cuda
`;
}

/**
 * Writes SOURCE.ptx of each source into a folder.
 * @param {string} folder
 */
export function unpackPtx(folder) {
  mkdirSync(folder, { recursive: true });
  const files = sources.map((source) => join(folder, `${source}.ptx`));
  const texts = readPtx();
  sources.forEach((source, i) => writeFileSync(files[i], texts[source]));
  return files;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const folder = process.argv[2];
  if (folder === undefined) {
    console.error('ptx.mjs: expected the folder to write into');
    process.exit(2);
  }
  unpackPtx(folder);
  const file = join(folder, 'kernels_ptx.cc');
  const text = modulesInCpp();
  // Written anew it would be compiled anew.
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
}
