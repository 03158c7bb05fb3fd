// Run: node examples/links.js
import { fitLink, predictUnseen } from 'gradlink/measure';

const points = [1e3, 1e4, 1e5, 1e6, 1e7].map((bytes) => ({ bytes, seconds: 1e-5 + bytes / 1e10 }));
const [{ alphaSeconds }] = fitLink(points).regimes;
console.log(`latency ${(alphaSeconds * 1e6).toFixed(1)} us`);
for (const { bytes, error } of predictUnseen(points))
  console.log(`${bytes} bytes: off by ${Math.abs(error) < 0.5 ? 'less' : 'more'} than half`);
// Prints: latency 10.0 us
// Prints: 10000 bytes: off by less than half
// Prints: 1000000 bytes: off by less than half
