// Run: node examples/models.js
import { elementsOf, network } from 'gradlink/models';

const { parameters, bytes } = network('resnet', { numLayers: 50, allParams: true });
const largest = Math.max(...parameters.map(({ shape }) => elementsOf(shape)));
console.log(`${parameters.length} arrays, ${bytes() / 1e6} MB, the largest of ${largest} elements`);
// Prints: 157 arrays, 102.197944 MB, the largest of 2359296 elements
