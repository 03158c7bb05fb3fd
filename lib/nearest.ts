// Finds the word that was probably meant by an unknown one.

/** Edit distance: insertions, deletions, substitutions and swaps of neighbours. */
function distance(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  let beforeThat: readonly number[] = [];
  for (let row = 1; row <= one.length; ++row) {
    const here = [row];
    for (let column = 1; column <= other.length; ++column) {
      const change = one[row - 1] === other[column - 1] ? 0 : 1;
      const swapped = one[row - 2] === other[column - 1] && one[row - 1] === other[column - 2];
      here.push(
        Math.min(
          here[column - 1]! + 1,
          above[column]! + 1,
          above[column - 1]! + change,
          row > 1 && column > 1 && swapped ? beforeThat[column - 2]! + 1 : Infinity,
        ),
      );
    }
    beforeThat = above;
    above = here;
  }
  return above[other.length]!;
}

/** Spelling variants as one: `AllReduce`, `all-reduce` and `all_reduce`. */
export function plainLetters(word: string): string {
  return word.toLowerCase().replaceAll(/[-_ ]/g, '');
}

/**
 * Our names and their synonyms in torch, Keras, MXNet, Horovod, nccl-tests and others, in plain letters. A row applies
 * if its name is a possible answer.
 */
const synonyms: readonly (readonly [ours: readonly string[], theirs: string])[] = [
  // Optimizers and schedules.
  [['learningrate'], 'lr rate stepsize'],
  [['lr'], 'learningrate rate stepsize'],
  [['stepsize'], 'lr learningrate rate'],
  [['baselr'], 'lr learningrate initiallr initiallearningrate'],
  [['lrscheduler'], 'scheduler schedule lrschedule learningrateschedule'],
  [['wd'], 'weightdecay l2 l2regularization'],
  [['epsilon'], 'eps'],
  [['momentum'], 'mom'],
  [['beta1', 'beta2'], 'betas beta'],
  [['gamma1'], 'rho alpha'],
  [['rho'], 'gamma1 alpha'],
  [['clipgradient'], 'clipvalue clipgradientvalue clipgradvalue'],
  [['rescalegrad'], 'rescale gradscale'],
  [['eta'], 'trustcoefficient trustcoef'],
  [['factor'], 'gamma decayrate'],
  [['step'], 'stepsize decaysteps'],
  [['steps'], 'milestones iters iterations numiters'],
  [['maxupdate'], 'tmax totaliters totalsteps decaysteps'],
  [['finallr'], 'etamin minlr endlearningrate'],
  [['power'], 'pwr'],
  // Calls and training.
  [['timeoutms'], 'timeout timeouts timeoutseconds'],
  [['op'], 'reduction reduceop operation average'],
  [['root'], 'src dst dest rootrank source'],
  [['from'], 'src source'],
  [['to'], 'dst dest destination'],
  [['out'], 'output outputtensor outtensor result recvbuf'],
  [['output'], 'out outputfile outfile file'],
  [['scale'], 'prescale prescalefactor'],
  [['postscale'], 'postscalefactor'],
  [['splits'], 'inputsplitsizes outputsplitsizes sendcounts splitsizes'],
  [['size'], 'worldsize numreplicas'],
  [['dtype'], 'datatype type'],
  [['datatype'], 'dtype type'],
  [['devices'], 'ctx context contexts deviceids'],
  [['gpus'], 'deviceids ngpus numgpus'],
  [['batchsize'], 'batch'],
  [['bucketcapbytes'], 'bucketcapmb bucketsize bucketsizemb'],
  [['findunused'], 'findunusedparameters'],
  [['groups'], 'numgroups'],
  [['iters'], 'iterations niters numiters'],
  [['numiters'], 'iterations niters iters steps'],
  [['ranks'], 'np numproc nproc nranks numranks workers numworkers'],
  // Reduce operations.
  [['avg'], 'mean average'],
  [['sum'], 'add plus total'],
  [['prod'], 'product mul multiply times'],
  [['max'], 'maximum'],
  [['min'], 'minimum'],
  // Element types.
  [['float32'], 'float fp32 f32 single real'],
  [['float64'], 'double fp64 f64'],
  [['float16'], 'half fp16 f16'],
  [['bfloat16'], 'bf16 bfloat'],
  [['float8e4m3'], 'fp8e4m3 f8e4m3 float8e4m3fn'],
  [['float8e5m2'], 'fp8e5m2 f8e5m2'],
  [['int32'], 'int i32 integer'],
  [['int64'], 'long i64 bigint'],
  [['int16'], 'short i16'],
  [['int8'], 'char i8'],
  [['uint8'], 'byte u8 uchar'],
  [['uint32'], 'uint u32 unsigned'],
  [['uint64'], 'u64 ulong'],
  // Known elsewhere and without an equivalent here, however similar the spelling.
  [[], 'radam asgd adan uint16'],
];

/** From this length on a prefix counts: `cycle` for `cycleMs`. */
const shortestBeginning = 4;

/** With more than a third of the letters wrong it is another word. */
const alike = 3;

/** `int4` is not a misspelt `int8`. */
function otherNumbers(one: string, other: string): boolean {
  const [mine, theirs] = [one, other].map((word) => word.replaceAll(/\D/g, ''));
  return mine !== '' && theirs !== '' && mine !== theirs;
}

/**
 * The words that `word` may stand for: by equal spelling, else by synonym, else by prefix, else by edit distance.
 *
 * @returns such as `adam`, `int8 or uint8`, `beta1 and beta2`; undefined if no word is near
 */
export function meantBy(word: string, words: readonly string[]): string | undefined {
  const letters = plainLetters(word);
  const spelt = new Map(words.map((other) => [plainLetters(other), other]));
  const same = spelt.get(letters);
  if (same !== undefined) return same;
  const rows = synonyms.filter(([, theirs]) => theirs.split(' ').includes(letters));
  const ours = rows.find(([names]) => names.every((name) => spelt.has(name)))?.[0];
  if (ours !== undefined) return ours.map((name) => spelt.get(name)).join(' and ') || undefined;
  const longer = [...spelt].filter(([other]) => other.startsWith(letters));
  if (letters.length >= shortestBeginning && longer.length === 1) return longer[0]![1];
  const near = [...spelt]
    .filter(([other]) => !otherNumbers(letters, other))
    .map(([other, whole]) => ({ whole, far: distance(letters, other) }))
    .filter(({ far }) => far * alike <= Math.max(letters.length, alike));
  const least = Math.min(...near.map(({ far }) => far));
  const nearest = near.filter(({ far }) => far === least).map(({ whole }) => whole);
  return nearest.join(' or ') || undefined;
}

/** ` Did you mean adam?` with a leading space; empty if no word is near. */
export function didYouMean(word: string, words: readonly string[]): string {
  const meant = meantBy(word, words);
  return meant === undefined ? '' : ` Did you mean ${meant}?`;
}
