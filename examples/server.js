// Run: GRADLINK_JOB=example-$$ GRADLINK_NUM_WORKERS=1 GRADLINK_NUM_SERVERS=1 GRADLINK_RANK=0 GRADLINK_SIZE=1 node examples/server.js
// `gradlink launch -n 1 -s 1` sets these variables for a worker and a server of their own; here one process is both.
import { KVStore, serveJob } from 'gradlink';

const stop = new AbortController();
const updater = (key, pushed, stored) => stored.set(pushed.map((x) => 2 * x)); // what a push does
const served = serveJob({ updater, signal: stop.signal });
const kv = await KVStore.create('dist_sync');
const w = Float32Array.of(1, 2);
await kv.init('w', w);
await kv.pushPull('w', w); // what comes back replaces w
console.log(w);
await kv.close().then(() => stop.abort());
await served;
// Prints: Float32Array(2) [ 2, 4 ]
