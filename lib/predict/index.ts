/** Predicts the effect of more workers. */
export { predictCurve, type MeasuredStep, type PredictedPoint } from './curve.js';
export {
  fitLink,
  plainLink,
  predictUnseen,
  type HeldOut,
  type Link,
  type LinkOrigin,
  type Point,
  type Regime,
} from './link.js';
export { linkOfPair, type HostPair } from './pair.js';
export * from './scaling.js';
export { exchangeSeconds, schemes, type Cluster, type Scheme } from './schemes.js';
export { bucketsOf, stepTime, type Bucket, type StepTime, type Workload } from './step.js';
export { linkOfSweep, type MeasuredLink } from './sweep-link.js';
export {
  publishedTables,
  validatePublished,
  validateSweep,
  type Checked,
  type PublishedTable,
  type Validation,
} from './validate.js';
