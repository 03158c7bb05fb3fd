// Run: node examples/environment.js
import { nativePath } from 'gradlink';
import { describeEnvironment } from 'gradlink/measure';

const { nodeVersion, onlineCores, variables } = describeEnvironment({
  simdLevel: null,
  threads: 2,
});
console.log(nodeVersion === process.version, onlineCores > 0);
console.log(variables.PATH); // a report shows no variables but a list of known ones
console.log(nativePath().split('/').at(-1));
// Prints: true true
// Prints: undefined
// Prints: gradlink.node
