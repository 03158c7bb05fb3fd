// Checks of result records that callers construct, as far as the functions here read them.
import {
  aBoolean,
  anAmount,
  anObject,
  aNumber,
  aString,
  having,
  listOf,
  orAbsent,
  orNull,
} from '../checks.js';

export const statisticsKind = having({
  samples: aNumber,
  minSeconds: aNumber,
  medianSeconds: aNumber,
  p95Seconds: aNumber,
  medianInterval: having({ lowerSeconds: aNumber, upperSeconds: aNumber }),
});

export const volumeKind = having({
  bytes: anAmount,
  algorithmFormula: aString,
  busFactor: aNumber,
  busFormula: aString,
  mustMoveBytes: aNumber,
  mustMoveFormula: aString,
});

export const checkKind = having({
  kind: aString,
  wrong: orNull(aNumber),
  error: orNull(aNumber),
  tolerance: orNull(aNumber),
  passed: aBoolean,
});

export const limitKind = having({
  ratio: aNumber,
  boundSeconds: aNumber,
  mustMoveBytes: aNumber,
  kind: orAbsent(aString),
  basis: orAbsent(aString),
  loopBytes: orAbsent(aNumber),
});

export const sharesKind = having({ copy: aNumber, wire: aNumber, merge: aNumber, update: aNumber });

export const contextKind = having({
  arrays: orAbsent(aNumber),
  threads: orAbsent(orNull(aNumber)),
  availableCores: orAbsent(orNull(aNumber)),
  grantedCores: orAbsent(orNull(aNumber)),
  lastLevelCacheBytes: orAbsent(orNull(aNumber)),
  processes: orAbsent(aNumber),
  shares: orAbsent(sharesKind),
});

export const identityKind = having({ name: aString, parameters: anObject });

const samplesKind = orAbsent(listOf(aNumber));

const casesKind = listOf(
  having({
    name: aString,
    parameters: anObject,
    status: aString,
    samplesSeconds: samplesKind,
    statistics: orAbsent(statisticsKind),
  }),
);

export const countedKind = having({ cases: casesKind });

/** As far as comparing and predicting read it; reports from files are validated by the schema. */
export const reportKind = having({
  run: having({ tool: aString, packageVersion: aString, startedAt: aString }),
  environment: having({ variables: anObject }),
  gpus: orAbsent(having({ devices: listOf(anObject) })),
  cases: casesKind,
});
