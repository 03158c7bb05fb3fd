// Touches memory for the first time, a piece after another, and says how fast that went. On a virtual machine the host may have
// to find each page first, which takes seconds a GiB and happens only once: it shall not happen while a contender is timed.
//
//   touch.js BYTES SECONDS     SECONDS: after which it stops, however much is touched
const [bytes, limit] = process.argv.slice(2).map(Number);
const piece = 2 ** 26;
const page = 4096;
const held = [];
const start = performance.now();
const seconds = () => (performance.now() - start) / 1e3;
let touched = 0;
while (touched < bytes && seconds() < limit) {
  const array = new Uint8Array(Math.min(piece, bytes - touched));
  for (let i = 0; i < array.length; i += page) array[i] = 1;
  touched += array.length;
  held.push(array);
}
console.log(JSON.stringify({ kind: 'touch', bytes: touched, seconds: seconds() }));
