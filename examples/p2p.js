// Run: node examples/p2p.js
import { runP2p } from 'gradlink/measure';

const cases = ['host_to_device_memcpy_ce', 'device_to_host_memcpy_ce'];
try {
  const report = await runP2p({ cases, bytes: 2 ** 24, loops: 4, samples: 2 });
  for (const { name, status, reason } of report.cases) console.log(name, status, reason);
} catch (error) {
  console.log(error.code); // this machine has no NVIDIA driver
}
// Prints: ERR_BACKEND_UNAVAILABLE
