// The kernels' PTX, which travels compressed: it is some two megabytes of generated text that nobody reads. One file,
// {MODULE: TEXT} as JSON under Brotli, which Node reads and writes and CMake's own archives do not need.
//
//   node native/cuda/ptx.mjs FOLDER    writes FOLDER/MODULE.ptx, and FOLDER/MODULE.ptx.z with what the addon carries
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, constants, deflateSync } from 'node:zlib';

/** native/cuda/MODULE.cu is what each is made of. */
export const modules = ['kernels', 'step_kernels'];

export const packedPtx = fileURLToPath(new URL('ptx.json.br', import.meta.url));

/** @returns {Record<string, string>} the text of each module */
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
 * Writes MODULE.ptx of each module into a folder.
 * @param {string} folder
 */
export function unpackPtx(folder) {
  mkdirSync(folder, { recursive: true });
  const files = modules.map((module) => join(folder, `${module}.ptx`));
  const texts = readPtx();
  modules.forEach((module, i) => writeFileSync(files[i], texts[module]));
  return files;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  for (const file of unpackPtx(process.argv[2])) {
    const text = Buffer.concat([readFileSync(file), Buffer.of(0)]);
    writeFileSync(`${file}.z`, deflateSync(text, { level: 9 }));
  }
}
