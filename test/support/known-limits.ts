// What this machine's memory allows, known instead of measured, which takes a third of a second each time: the acceptance
// runs measure it. Imported by tests before what measures.
import { vi } from 'vitest';

vi.mock('../../lib/measure/machine/memory-limit.js', () => ({
  measureMemoryLimit: () => Promise.resolve({ copyBytesPerSecond: 2e10, threads: 2 }),
}));
vi.mock('../../lib/measure/machine/plain-loops.js', () => ({
  measureLoop: () => Promise.resolve(2e10),
}));
