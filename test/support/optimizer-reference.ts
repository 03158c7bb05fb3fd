// Optimizers in plain float64, written from the published formulas and apart from lib/ and native/: one object keeps
// one array's states.

/** Options by name, all given. */
export type ReferenceOptions = Readonly<Record<string, number | boolean | string | null>>;

/** A step on `w` in place; t counts from 1. */
export type ReferenceStep = (w: number[], grad: readonly number[], t: number) => void;

const clip = (x: number, bound: number | null): number =>
  bound === null ? x : Math.min(Math.max(x, -bound), bound);
const norm = (x: readonly number[]): number => Math.sqrt(x.reduce((sum, v) => sum + v * v, 0));

/** The reference of an optimizer by name. `decay` goes into the gradient before clipping where the optimizer says so. */
export function referenceOptimizer(
  name: string,
  options: ReferenceOptions,
  count: number,
): ReferenceStep {
  const num = (option: string, fallback: number): number => {
    const value = options[option] ?? fallback;
    return typeof value === 'number' ? value : Number(value);
  };
  const on = (option: string, fallback: boolean): boolean => Boolean(options[option] ?? fallback);
  const bound = (option: string): number | null => (options[option] ?? null) as number | null;
  const zeros = (): number[] => new Array<number>(count).fill(0);
  const at = (x: readonly number[], i: number): number => x[i]!;

  const wd = num('wd', 0);
  const rescale = num('rescaleGrad', 1);
  const limit = bound('clipGradient');
  const plain = (g: number): number => clip(g * rescale, limit);
  const a = zeros();
  const b = zeros();
  const c = zeros();

  const each = (body: (i: number, w: number, g: number, t: number) => number): ReferenceStep => {
    return (w, grad, t) => {
      for (let i = 0; i < count; i += 1) w[i] = body(i, at(w, i), at(grad, i), t);
    };
  };

  const momentumStep = (w: number[], grad: readonly number[], lr: number, mu: number): void => {
    for (let i = 0; i < count; i += 1) {
      a[i] = mu * at(a, i) - lr * (plain(at(grad, i)) + wd * at(w, i));
      w[i] = at(w, i) + at(a, i);
    }
  };

  switch (name) {
    case 'sgd': {
      const lr = num('learningRate', 0.01);
      const mu = num('momentum', 0);
      if (!on('nesterov', false) || mu === 0) return (w, grad) => momentumStep(w, grad, lr, mu);
      return each((i, w, g) => {
        const step = lr * (plain(g) + wd * w);
        const before = mu * at(a, i);
        a[i] = before - step;
        return w - before + (1 + mu) * at(a, i);
      });
    }
    case 'lars': {
      const lr = num('learningRate', 0.01);
      return (w, grad) => {
        const wNorm = norm(w);
        const gNorm = norm(grad.map((g) => g * rescale));
        const trust =
          wNorm > 0 && gNorm > 0
            ? (num('eta', 0.001) * wNorm) / (gNorm + wd * wNorm + num('epsilon', 0))
            : 1;
        momentumStep(w, grad, lr * trust, num('momentum', 0));
      };
    }
    case 'signum': {
      const lr = num('learningRate', 0.01);
      const mu = num('momentum', 0.9);
      if (mu === 0) return each((_, w, g) => (1 - lr * wd) * w - lr * Math.sign(g * rescale));
      return each((i, w, g) => {
        a[i] = mu * at(a, i) - (1 - mu) * (wd * w + plain(g));
        return (1 - lr * num('wdLh', 0)) * w + lr * Math.sign(at(a, i));
      });
    }
    case 'adam':
    case 'adamw': {
      const decoupled = name === 'adamw';
      const [b1, b2] = [num('beta1', 0.9), num('beta2', 0.999)];
      const epsilon = num('epsilon', decoupled ? 1e-6 : 1e-8);
      return each((i, w, g, t) => {
        const grad = decoupled ? plain(g) : clip(g * rescale + wd * w, limit);
        a[i] = b1 * at(a, i) + (1 - b1) * grad;
        b[i] = b2 * at(b, i) + (1 - b2) * grad * grad;
        const corrected = !decoupled || on('biasCorrection', true);
        const lr =
          num('learningRate', 0.001) * (corrected ? Math.sqrt(1 - b2 ** t) / (1 - b1 ** t) : 1);
        return w - lr * (at(a, i) / (Math.sqrt(at(b, i)) + epsilon) + (decoupled ? wd * w : 0));
      });
    }
    case 'lamb': {
      const [b1, b2] = [num('beta1', 0.9), num('beta2', 0.999)];
      return (w, grad, t) => {
        const corrected = on('biasCorrection', true);
        const direction = w.map((weight, i) => {
          const g = plain(at(grad, i));
          a[i] = b1 * at(a, i) + (1 - b1) * g;
          b[i] = b2 * at(b, i) + (1 - b2) * g * g;
          const mean = corrected ? at(a, i) / (1 - b1 ** t) : at(a, i);
          const variance = corrected ? at(b, i) / (1 - b2 ** t) : at(b, i);
          return mean / (Math.sqrt(variance) + num('epsilon', 1e-6)) + wd * weight;
        });
        let wNorm = norm(w);
        wNorm = Math.max(wNorm, bound('lowerBound') ?? wNorm);
        wNorm = Math.min(wNorm, bound('upperBound') ?? wNorm);
        const dNorm = norm(direction);
        const trust = wNorm === 0 || dNorm === 0 ? 1 : wNorm / dNorm;
        direction.forEach((d, i) => {
          w[i] = at(w, i) - num('learningRate', 0.001) * trust * d;
        });
      };
    }
    case 'adamax': {
      const [b1, b2] = [num('beta1', 0.9), num('beta2', 0.999)];
      return each((i, w, g, t) => {
        const grad = clip(g * rescale + wd * w, limit);
        a[i] = b1 * at(a, i) + (1 - b1) * grad;
        b[i] = Math.max(b2 * at(b, i), Math.abs(grad));
        return w - ((num('learningRate', 0.002) / (1 - b1 ** t)) * at(a, i)) / at(b, i);
      });
    }
    case 'nadam': {
      const [b1, b2] = [num('beta1', 0.9), num('beta2', 0.999)];
      const mu = (t: number): number => b1 * (1 - 0.5 * 0.96 ** (t * num('scheduleDecay', 0.004)));
      let product = 1;
      return (w, grad, t) => {
        product *= mu(t);
        for (let i = 0; i < count; i += 1) {
          const g = clip(at(grad, i) * rescale + wd * at(w, i), limit);
          a[i] = b1 * at(a, i) + (1 - b1) * g;
          b[i] = b2 * at(b, i) + (1 - b2) * g * g;
          const mean = at(a, i) / (1 - product * mu(t + 1));
          const direction = ((1 - mu(t)) * g) / (1 - product) + mu(t + 1) * mean;
          const root = Math.sqrt(at(b, i) / (1 - b2 ** t)) + num('epsilon', 1e-8);
          w[i] = at(w, i) - (num('learningRate', 0.001) * direction) / root;
        }
      };
    }
    case 'ftml': {
      const [b1, b2] = [num('beta1', 0.6), num('beta2', 0.999)];
      return each((i, w, g, t) => {
        const grad = clip(g * rescale + wd * w, limit);
        const before = at(a, i);
        b[i] = b2 * at(b, i) + (1 - b2) * grad * grad;
        const root = Math.sqrt(at(b, i) / (1 - b2 ** t)) + num('epsilon', 1e-8);
        a[i] = ((1 - b1 ** t) / num('learningRate', 0.01)) * root;
        c[i] = b1 * at(c, i) + (1 - b1) * grad - (at(a, i) - b1 * before) * w;
        return -at(c, i) / at(a, i);
      });
    }
    case 'dcasgd': {
      let before: number[] | undefined;
      return (w, grad) => {
        const last = (before ??= w.slice());
        for (let i = 0; i < count; i += 1) {
          const [weight, g] = [at(w, i), plain(at(grad, i))];
          const late = num('lambda', 0.04) * g * g * (weight - at(last, i));
          a[i] =
            num('momentum', 0) * at(a, i) - num('learningRate', 0.01) * (g + wd * weight + late);
          last[i] = weight;
          w[i] = weight + at(a, i);
        }
      };
    }
    case 'lbsgd': {
      const scale = num('batchScale', 1);
      const perEpoch = num('updatesPerEpoch', 32);
      const nwup = num('warmupEpochs', 5) * perEpoch;
      const shapes: Record<string, (part: number) => number> = {
        linear: (part) => part,
        power2: (part) => part * part,
        sqrt: Math.sqrt,
      };
      const strategy = String(options['warmupStrategy'] ?? 'linear');
      return (w, grad, t) => {
        const pushes = num('beginEpoch', 0) * perEpoch + t;
        grad.forEach((g, i) => (b[i] = at(b, i) + g));
        if (pushes % scale !== 0) return;
        const mean = b.map((sum) => sum / scale);
        b.fill(0);
        const rising = 1 + (scale - 1) * (shapes[strategy] ?? Number)(pushes / nwup);
        let times = pushes >= nwup ? scale : nwup <= 1 ? 1 : rising;
        if (strategy === 'lars') {
          const [w2, g2] = [norm(w) ** 2, norm(mean) ** 2];
          times = clip(Math.max(Math.sqrt(w2 / (g2 + wd * w2 + 1e-18)), 0.01), 100);
        }
        momentumStep(w, mean, num('learningRate', 0.01) * times, num('momentum', 0));
      };
    }
    case 'adagrad':
      return each((i, w, g) => {
        const grad = plain(g);
        a[i] = at(a, i) + grad * grad;
        return (
          w -
          num('learningRate', 0.01) * (grad / Math.sqrt(at(a, i) + num('epsilon', 1e-7)) + wd * w)
        );
      });
    case 'rmsprop': {
      const lr = num('learningRate', 0.001);
      const [g1, g2, epsilon] = [num('gamma1', 0.9), num('gamma2', 0.9), num('epsilon', 1e-8)];
      return each((i, w, g) => {
        const grad = clip(g * rescale + wd * w, limit);
        a[i] = g1 * at(a, i) + (1 - g1) * grad * grad;
        if (!on('centered', false)) {
          return clip(w - (lr * grad) / Math.sqrt(at(a, i) + epsilon), bound('clipWeights'));
        }
        b[i] = g1 * at(b, i) + (1 - g1) * grad;
        c[i] = g2 * at(c, i) - (lr * grad) / Math.sqrt(at(a, i) - at(b, i) ** 2 + epsilon);
        return clip(w + at(c, i), bound('clipWeights'));
      });
    }
    case 'adadelta': {
      const [rho, epsilon] = [num('rho', 0.9), num('epsilon', 1e-5)];
      return each((i, w, g) => {
        const grad = plain(g);
        a[i] = rho * at(a, i) + (1 - rho) * grad * grad;
        const delta = (Math.sqrt(at(b, i) + epsilon) / Math.sqrt(at(a, i) + epsilon)) * grad;
        b[i] = rho * at(b, i) + (1 - rho) * delta * delta;
        return w - delta - wd * w;
      });
    }
    case 'ftrl': {
      const [lr, l1] = [num('learningRate', 0.1), num('lambda1', 0.01)];
      return each((i, w, g) => {
        const grad = plain(g);
        const n = at(b, i) + grad * grad;
        a[i] = at(a, i) + grad - ((Math.sqrt(n) - Math.sqrt(at(b, i))) * w) / lr;
        b[i] = n;
        const z = at(a, i);
        if (Math.abs(z) <= l1) return 0;
        return (Math.sign(z) * l1 - z) / ((num('beta', 1) + Math.sqrt(n)) / lr + wd);
      });
    }
    case 'test':
      return each((_, w, g) => w + rescale * g);
    default:
      throw new Error(`no reference for ${name}`);
  }
}
