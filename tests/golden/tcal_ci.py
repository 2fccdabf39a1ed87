"""Golden values of the binned statistics, for `estimators.rs`, `evaluation.rs` and `tables.rs`: plug-in and
debiased estimators, the l2-ECE confidence interval, the classical tests and adaptive T-Cal. Straight numpy.

    pip install numpy scipy
    python tcal_ci.py seeded > seeded.json     samples drawn from a seed, which the tests draw again; 10 minutes
    python tcal_ci.py DATA > tcal_ci.json      five tiny samples, and the published model outputs of DATA:
                                               NETWORK.METHOD.csv with columns score and label
"""
import glob, json, os, sys
import numpy as np
from scipy import stats

def cells(z, m):                      # [0,1/m), ..., [(m-1)/m, 1]: last one closed
    return np.minimum(np.floor(z * m).astype(np.int64), m - 1)

def sums(z, y, m):
    i = cells(z, m); u = y - z; v = z * (1 - z)
    uq, inv = np.unique(i, return_inverse=True)
    f = lambda w: np.bincount(inv, weights=w, minlength=len(uq))
    return f(np.ones_like(z)), f(u), f(u * u), f(v), f(v * v)

def estimators(z, y, m):
    n = len(z); N, U, U2, V, V2 = sums(z, y, m)
    Tb = (U**2 / N).sum() / n
    Td = ((U**2 - U2) / N).sum() / n
    k = N >= 2
    Tci = ((U[k]**2 - U2[k]) / (N[k] - 1)).sum() / n
    l1 = np.abs(U).sum() / n
    mx = np.abs(U / N).max()
    var_d = (2 * (V**2 - V2) / N**2).sum() / n**2
    var_ci = (2 * (V[k]**2 - V2[k]) / (N[k] - 1)**2).sum() / n**2
    e = U / N; cov = U2 / N - e**2
    s1 = (N / n * e**4).sum() - ((N / n * e**2).sum())**2 + 4 * (N / n * e * cov * e).sum()
    return dict(m=int(m), occupied=int(len(N)), tb=Tb, td=Td, t_ci=Tci, ece_l1=l1, mce=mx,
                null_sd_td=float(np.sqrt(var_d)), null_sd_tci=float(np.sqrt(var_ci)), sigma1_sq=float(s1))

def sigma0_paper(lo):                 # k = 1: integral over [lo, 1] of z^2 - 2 z^3 + z^4, times two
    F = lambda z: z**3 / 3 - z**4 / 2 + z**5 / 5
    return float(np.sqrt(2 * (F(1.0) - F(lo))))

def interval(t, s1sq, n, alpha, zero_thr):
    """Algorithm 1 of the interval paper on the squared scale. zero_thr: include 0 when T+ < zero_thr."""
    tp = max(t, 0.0); za, za2 = stats.norm.ppf(1 - alpha), stats.norm.ppf(1 - alpha / 2)
    h = np.sqrt(max(s1sq, 0.0) / n)
    hi = tp + za2 * h
    if tp / 2 <= tp - za2 * h: lo, lo_open = tp - za2 * h, False
    elif tp - za * h < tp / 2: lo = max(0.0, tp - za * h); lo_open = lo == 0.0
    else: lo, lo_open = tp / 2, False
    zero = tp < zero_thr
    return dict(alpha=alpha, lo=float(lo), hi=float(hi), contains_zero=bool(zero or (lo == 0 and not lo_open)), zero_threshold=float(zero_thr))

def classical(z, y):
    n = len(z); v = z * (1 - z); zc = np.clip(z, 2.0**-32, 1 - 2.0**-32); l = np.log(zc / (1 - zc)); vc = zc * (1 - zc)
    d = (((1 - 2 * z)**2) * v).sum(); sp = ((y - z) * (1 - 2 * z)).sum() / np.sqrt(d) if d > 0 else np.nan
    g = np.array([(y - zc).sum(), ((y - zc) * l).sum()])
    I = np.array([[vc.sum(), (vc * l).sum()], [(vc * l).sum(), (vc * l * l).sum()]])
    cox = float(g @ np.linalg.solve(I, g)) if np.linalg.cond(I) < 1e12 else None
    return dict(brier=float(((y - z)**2).mean()), log_loss=float(-(y * np.log(zc) + (1 - y) * np.log(1 - zc)).mean()),
                in_the_large=float((y - z).mean()), in_the_large_z=float((y - z).sum() / np.sqrt(v.sum())),
                spiegelhalter_z=float(sp), spiegelhalter_p=float(2 * stats.norm.sf(abs(sp))),
                cox_score=cox, cox_p=None if cox is None else float(stats.chi2.sf(cox, 2)))

def report(z, y, levels, ci_bins=50, lower_support=0.0):
    n = len(z)
    r = dict(n=n, n_scales=int(np.ceil(2 * np.log2(n / np.sqrt(np.log(n))))), levels=[estimators(z, y, 2**b) for b in levels],
             ece15=estimators(z, y, 15)['ece_l1'], classical=classical(z, y))
    e = estimators(z, y, ci_bins); r['ci'] = dict(bins=ci_bins, t=e['t_ci'], sigma1_sq=e['sigma1_sq'])
    s0 = sigma0_paper(lower_support); w = 1 / ci_bins
    r['ci']['sigma0_paper'] = s0
    r['ci']['paper'] = [interval(e['t_ci'], e['sigma1_sq'], n, a, stats.norm.ppf(1 - a) * s0 / (n * np.sqrt(w))) for a in (0.1, 0.05)]
    r['ci']['conditional'] = [interval(e['t_ci'], e['sigma1_sq'], n, a, stats.norm.ppf(1 - a) * e['null_sd_tci']) for a in (0.1, 0.05)]
    return r

# Seeded samples: xoshiro256++ seeded by SplitMix64, as in src/stats/rng.rs, and laws of nothing but products,
# sums and comparisons, so that every double is the same here and in the tests (support/golden.rs).
MASK = 2**64 - 1

def rotate(x, k): return ((x << k) | (x >> (64 - k))) & MASK

class Rng:
    def __init__(self, seed):
        self.s, x = [], seed
        for _ in range(4):
            x = (x + 0x9E3779B97F4A7C15) & MASK
            z = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.s.append(z ^ (z >> 31))

    def uniform(self):
        s = self.s
        out = (rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t; s[3] = rotate(s[3], 45)
        return (out >> 11) / 2.0**53

def confidence(u): return 1.0 - 0.9 * (u * u * u * u)
def rare(u): return 0.2 * (u * u * u * u * u * u)
def true(z): return z

# Name: seed, events, score of a uniform number, probability of the outcome.
SEEDED = {
    'confidences': (1, 10_000, confidence, true),
    'confidences_too_high': (2, 10_000, confidence, lambda z: z - 0.4 * (z * (1.0 - z))),
    'uniform': (3, 5_000, true, true),
    'uniform_bent': (4, 20_000, true, lambda z: z * z * (3.0 - 2.0 * z)),
    'rare': (5, 50_000, rare, true),
    'rare_too_low': (6, 50_000, rare, lambda z: 1.5 * z),
    'few_values': (7, 8_000, lambda u: np.floor(u * 33.0) / 32.0, true),
    'cell_edges': (8, 10_000, lambda u: np.floor(u * 4097.0) / 4096.0, lambda z: 0.1 + 0.8 * z),
}

def seeded(name):
    seed, n, score, truth = SEEDED[name]
    rng, z, y = Rng(seed), [], []
    for _ in range(n):
        z.append(float(score(rng.uniform())))
        y.append(float(rng.uniform() < truth(z[-1])))
    return np.array(z), np.array(y)

def t_cal(z, y, alpha=0.05, replicates=2000):
    """Adaptive T-Cal by redrawn outcomes, Bonferroni over all scales."""
    n = len(z); scales = int(np.ceil(2 * np.log2(n / np.sqrt(np.log(n))))); rng = np.random.default_rng(7)
    index, counts = [], []
    for b in range(1, scales + 1):
        uq, inv = np.unique(cells(z, 2**b), return_inverse=True)
        index.append(inv); counts.append(np.bincount(inv))
    def of(y):
        u = y - z; u2 = u * u
        return np.array([((np.bincount(i, u)**2 - np.bincount(i, u2)) / c).sum() / n for i, c in zip(index, counts)])
    found, above = of(y), np.zeros(scales)
    for _ in range(replicates): above += of((rng.random(n) < z).astype(float)) >= found - 1e-15
    p = (1 + above) / (1 + replicates)
    return dict(alpha=alpha, replicates=replicates, p_values=p.tolist(), reject=bool((p <= alpha / scales).any()))

def tiny():
    rng = np.random.default_rng(1)
    yield 'eight', np.array([0, .125, .25, .25, .5, .75, 1, 1.]), np.array([0, 0, 1, 0, 1, 1, 1, 0.])
    yield 'constant', np.full(40, .3), (np.arange(40) % 3 == 0).astype(float)
    yield 'grid', np.arange(64) / 64, (np.arange(64) * 7 % 64 < np.arange(64)).astype(float)
    z = np.round(rng.random(200), 6); yield 'uniform200', z, (rng.random(200) < z).astype(float)
    z = np.round(rng.beta(.4, 30, 300), 7); yield 'rare300', z, (rng.random(300) < z).astype(float)

if __name__ == '__main__':
    out = {}
    if sys.argv[1] == 'seeded':
        for name in SEEDED:
            z, y = seeded(name)
            # Sums one after another, which tell that the test drew the same sample.
            drawn = dict(sum_z=float(sum(z.tolist())), sum_y=int(y.sum()))
            out[name] = dict(drawn=drawn, **report(z, y, range(1, 24)), t_cal=t_cal(z, y))
            print(name, out[name]['t_cal']['reject'], min(out[name]['t_cal']['p_values']), file=sys.stderr)
    else:
        for name, z, y in tiny(): out[name] = dict(z=z.tolist(), y=y.astype(int).tolist(), **report(z, y, range(1, 13)))
        for f in sorted(glob.glob(sys.argv[1] + '/*.csv')):
            name = os.path.basename(f)[:-4]
            if name.split('.')[1] not in ('none', 'platt', 'poly', 'isotonic'): continue
            z, y = np.loadtxt(f, delimiter=',', skiprows=1).T
            out[name] = report(z, y, range(1, 24), lower_support={'cifar10': .1, 'cifar100': .01}[name.split('_')[0]])
    json.dump(out, sys.stdout, indent=1)
    print()
