// Run: node examples/synthetic.js
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { cifar10, syntheticImages, syntheticTokens } from 'gradlink/tfjs';

const images = syntheticImages('tiny', [4, 4, 1], { samples: 100, classes: 2, seed: 1 });
console.log(images.name, images.read(7, new Float32Array(16))); // fills the array, gives the class
const tokens = syntheticTokens(8, 1000, { samples: 100 });
console.log(tokens.name, tokens.read(4, new Int32Array(8)));
const folder = mkdtempSync(`${tmpdir()}/gradlink-cifar10-`); // with one image, all of it and its class 3
writeFileSync(`${folder}/data_batch_1.bin`, Buffer.alloc(3073, 3));
const pictures = cifar10(folder);
console.log(pictures.name, pictures.samples, pictures.read(0, new Float32Array(32 * 32 * 3)));
rmSync(folder, { recursive: true });
// Prints: tiny (synthetic) 1
// Prints: tokens (synthetic) 0
// Prints: cifar10 1 3
