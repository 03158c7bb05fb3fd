// Run: node examples/names.js
import { deviceDtypes, dtypes, fromFloat8, isStoreType, optimizerNames, reduceOps } from 'gradlink';
import { storeKinds, toFloat8 } from 'gradlink';
import { isNetworkName, listNetworks, networkNames } from 'gradlink/models';

console.log(reduceOps.join(), storeKinds.includes('device'), isStoreType('dist_sync'));
const more = deviceDtypes.filter((dtype) => !dtypes.includes(dtype));
console.log(dtypes.includes('bfloat16'), 'more on GPUs:', more.join());
console.log(fromFloat8('float8e4m3', toFloat8('float8e4m3', 1.3)), optimizerNames.includes('adam'));
console.log(isNetworkName('resnet'), listNetworks().length === networkNames.length);
// Prints: sum,prod,min,max,avg true true
// Prints: true more on GPUs: float8e4m3,float8e5m2
// Prints: 1.25 true
// Prints: true true
