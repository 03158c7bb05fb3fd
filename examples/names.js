// Run: node examples/names.js
import { deviceDtypes, dtypes, fromFloat8, isStoreType, optimizerNames, reduceOps } from 'gradlink';
import { storeKinds, toFloat8 } from 'gradlink';
import { isNetworkName, listNetworks, networkNames } from 'gradlink/models';

console.log(reduceOps.join(), storeKinds.includes('device'), isStoreType('dist_sync'));
console.log(dtypes.includes('bfloat16'), deviceDtypes.length - dtypes.length, 'more on GPUs');
console.log(fromFloat8('float8e4m3', toFloat8('float8e4m3', 1.3)), optimizerNames.includes('adam'));
console.log(isNetworkName('resnet'), listNetworks().length === networkNames.length);
// Prints: sum,prod,min,max,avg true true
// Prints: true 2 more on GPUs
// Prints: 1.25 true
// Prints: true true
