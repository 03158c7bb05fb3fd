// Run: node examples/rows.js
import { KVStore, RowSparse } from 'gradlink';

const store = await KVStore.create('local');
const shape = [1000, 2];
await store.init('embedding', new Float32Array(2000), { shape });
await store.push('embedding', new RowSparse({ indices: [7], data: Float32Array.of(3, 4), shape }));
const out = new RowSparse({ indices: [], data: new Float32Array(0), shape });
await store.rowSparsePull('embedding', out, [900, 7]);
console.log([...out.indices].join(), out.data.join());
await store.close();
// Prints: 7,900 3,4,0,0
