// Run: node examples/optimizers.js
import { AdaDelta, AdaGrad, AdaMax, Adam, AdamW, DCASGD, FTML, Ftrl, KVStore } from 'gradlink';
import { GroupAdaGrad, LAMB, LARS, Nadam, RMSProp, SGD, Signum } from 'gradlink';

const kinds = [AdaDelta, AdaGrad, AdaMax, Adam, AdamW, DCASGD, FTML, Ftrl];
for (const Kind of [...kinds, GroupAdaGrad, LAMB, LARS, Nadam, RMSProp, SGD, Signum]) {
  const store = await KVStore.create('local');
  await store.init('w', Float32Array.of(1));
  await store.setOptimizer(new Kind());
  await store.push('w', Float32Array.of(1)); // the gradient
  const weight = new Float32Array(1);
  await store.pull('w', weight);
  if (Kind === SGD || Kind === Adam) console.log(`${Kind.name}: ${weight[0].toFixed(3)}`);
  await store.close();
}
// Prints: Adam: 0.999
// Prints: SGD: 0.990
