// Run: node examples/names.js
import { deviceDtypes, dtypes, fromFloat8, isStoreType, optimizerNames, reduceOps } from 'gradlink';
import { storeKinds, toFloat8 } from 'gradlink';
import { isNetworkName, listNetworks, networkNames } from 'gradlink/models';

console.log('sums and more:', reduceOps.join());
console.log('stores:', storeKinds.join());
const known = [isStoreType('dist_sync'), isNetworkName('resnett')];
console.log('dist_sync and resnett are known:', known.join());
const more = deviceDtypes.filter((dtype) => !dtypes.includes(dtype));
console.log(dtypes.length, 'types, more on GPUs:', more.join());
console.log('1.3 in 8 bits:', fromFloat8('float8e4m3', toFloat8('float8e4m3', 1.3)));
console.log('optimizers:', optimizerNames.slice(0, 4).join());
const [first] = listNetworks();
console.log(`${networkNames.length} networks, such as ${first.name}: ${first.description}`);
// Prints: sums and more: sum,prod,min,max,avg
// Prints: stores: local,device,nccl,dist_sync,dist_sync_device,dist_async,dist_async_device,allreduce
// Prints: dist_sync and resnett are known: true,false
// Prints: 11 types, more on GPUs: float8e4m3,float8e5m2
// Prints: 1.3 in 8 bits: 1.25
// Prints: optimizers: adadelta,adagrad,adam,adamax
// Prints: 16 networks, such as resnet: ResNet version 2 (pre-activation)
