// Run: node examples/statistics.js
import { bandwidth, collectiveVolume, describe } from 'gradlink/measure';
import { medianInterval, mxnetBandwidth, perSecond, percentile } from 'gradlink/measure';

const seconds = [0.011, 0.01, 0.012, 0.01, 0.013, 0.01]; // six samples of one case
const statistics = describe(seconds);
const call = { countPerRank: 1e6, elementBytes: 4, ranks: 4, placement: 'in-place' };
const { bytes } = collectiveVolume('all_reduce', call);
console.log(bandwidth(bytes, statistics, 'S / t').bytesPerSecond, perSecond(bytes, 0.01));
console.log(percentile([1, 2, 3, 4], 95), medianInterval([1, 2, 3, 4, 5, 6]).upperSeconds);
console.log(mxnetBandwidth(bytes, 4, 0.01));
// Prints: 380952380.952381 400000000
// Prints: 4 6
// Prints: 600000000
