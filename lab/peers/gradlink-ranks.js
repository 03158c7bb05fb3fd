// Our own side of run.js, one rank of `gradlink launch`: times allReduce of float32 with the native loop, as the peers'
// programs do theirs, and prints one JSON line for each size and place.
//
//   gradlink-ranks.js plain|shared BYTES,BYTES,... in,out SECONDS [neighbors]
import { Communicator } from '../../dist/index.js';
import { sampleAllReduce, sampleNeighbors } from './sample.js';

const [memory, sizes, places, seconds, neighbors] = process.argv.slice(2);
const comm = await Communicator.world();

for (const bytes of sizes.split(',').map(Number)) {
  for (const place of places.split(',')) {
    const shared = memory === 'shared';
    const wanted = { bytes, place, shared, seconds: Number(seconds) };
    const print = (result) => {
      if (comm.rank === 0) console.log(JSON.stringify({ bytes, place, ...result }));
    };
    if (neighbors === undefined) {
      print(await sampleAllReduce(comm, wanted));
    } else {
      const sampled = await sampleNeighbors(comm, wanted);
      print(sampled.neighbors);
      print({ contender: `gradlink-${memory}-calls`, ...sampled.allReduce });
    }
  }
}
await comm.close();
