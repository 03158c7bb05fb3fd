// Run: node examples/cases.js
import { completeCase, errorCheck, exactCheck, failedCase, judge } from 'gradlink/measure';
import { storeVolume, unchecked, waivedCase } from 'gradlink/measure';

const identity = { name: 'my_copy', parameters: { bytes: 1e6 } };
const timing = { samplesSeconds: [0.001, 0.001, 0.0011], copyBytesPerSecond: null };
const volume = storeVolume({ bytes: 1e6, devices: 2 });
const result = completeCase({ ...identity, ...timing, volume, check: exactCheck(0) });
console.log(result.status, result.busBandwidth.formula);
console.log(errorCheck(1e-7, 1e-6).passed, errorCheck(NaN, 1e-6).passed, unchecked.kind);
console.log(waivedCase(identity, 'no GPU').reason, failedCase(identity, new Error('lost')).reason);
const { statistics } = result;
console.log(judge({ statistics, limit: null, bytes: 1e6 }).text);
// Prints: ok S * 2(n-1)/n / t, n = devices of this process
// Prints: true false none
// Prints: no GPU lost
// Prints: no limit was measured, so there is nothing to judge this against
