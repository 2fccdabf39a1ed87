#!/usr/bin/env python3
"""Anytime-valid detector of miscalibration: a plain program, and the golden values of sequential.rs.

Null (exact):      y_t | z_t, past ~ mean z_t                     (tol = delta = 0)
Null (composite):  mean in [lo(z_t), hi(z_t)],  odds of lo/hi = odds(z) * exp(-/+tol), then -/+ delta
Every multiplier used below is a one-step e-value under that null, so with injection a_t >= 0
    M_t = sum_comp weight * M_t^comp ,   M_t^comp = e_t^comp * (M_{t-1}^comp + a_t)
satisfies  E[M_T] <= E[sum_{t<=T} a_t]  for every stopping time T.
    ARL mode: a_t = 1,          alarm when M_t >= A        -> E[T] >= A and P(T <= n) <= n/A
    PFA mode: sum_t a_t <= 1,   alarm when M_t >= 1/alpha  -> P(ever a false alarm) <= alpha

Monitor        pure python/numpy reference (per event and per batch)
fast_run       numba kernel with the same arithmetic (simulations)
cs_radius etc. confidence sequences.   Run with a subcommand; `selftest` checks the two agree.
"""
import sys, json, math, time
import numpy as np

# ------------------------------------------------------------------ constants
AMPS = 2.0 ** np.arange(-5, 1)          # log-odds amplitudes of the one-parameter bets, 1/32 ... 1 (J = 6)
CAMPS = 2.0 ** np.arange(-4, 0)         # log-odds amplitudes inside cells, 1/16 ... 1/2           (Jc = 4)
KZ = 8                                  # equal-width scales  2^1 .. 2^8 cells in z
KL = 5                                  # scales 2^1 .. 2^5 in u = expit(logit(z)/3)
W_INT, W_SLOPE, W_Z, W_L = 0.25, 0.25, 0.25, 0.25
HCLIP = 12.0                            # clip of logit(z)
FS_C, FS_A, FS_B = 3.0, 16.0, 4.0       # fixed share: H_m = FS_C*(FS_A + FS_B*sqrt(m))/m
RHO_MAX = 0.5
W_EPS = 1e-12
M_MAX = 1e280
S0 = 1e4                                # PFA spending a_t = S0/((t+S0-1)(t+S0)), t = 1,2,..


def spend(t, s0=S0):
    return s0 / ((t + s0 - 1.0) * (t + s0))


def bounds(z, tol=0.0, delta=0.0):
    """edges of the composite null for the conditional mean of y given z"""
    et = math.exp(tol)
    hi = z * et / (1.0 - z + z * et) + delta
    lo = z / (z + (1.0 - z) * et) - delta if z > 0.0 else 0.0 - delta
    return max(lo, 0.0), min(hi, 1.0)


def tilt(y, lo, hi, ex):
    """exp(beta*y)/(1-p+p*exp(beta)), ex = exp(beta), p = worst edge; valid for any y in [0,1]"""
    p = hi if ex > 1.0 else lo
    num = ex if y == 1.0 else (1.0 if y == 0.0 else ex ** y)
    return num / (1.0 - p + p * ex)


class Monitor:
    """All state: M, N (onset) per component and W (sign weights) per (cell, amplitude)."""

    def __init__(self, mode='arl', A=2e6, alpha=0.05, tol=0.0, delta=0.0, amps=AMPS, camps=CAMPS, kz=KZ, kl=KL):
        self.mode, self.tol, self.delta = mode, tol, delta
        self.log_thr = math.log(A) if mode == 'arl' else math.log(1.0 / alpha)
        self.amps = np.asarray(amps, float); J = self.J = len(self.amps)
        self.kz, self.kl, K = kz, kl, kz + kl
        self.m = [2 ** (k + 1) for k in range(kz)] + [2 ** (k + 1) for k in range(kl)]
        self.H = [FS_C * (FS_A + FS_B * math.sqrt(m)) / m for m in self.m]
        self.exp_b = np.exp(self.amps)
        self.camps = np.asarray(camps, float); C = self.C = len(self.camps)
        self.exp_c = np.exp(self.camps)
        # component order: intercept (+b_j,-b_j)_j, slope (+b_j/2,-b_j/2)_j, then scale k, cell amplitude j
        self.weight = np.concatenate([np.full(2 * J, W_INT / (2 * J)), np.full(2 * J, W_SLOPE / (2 * J)),
                                      np.full(kz * C, W_Z / (kz * C)), np.full(kl * C, W_L / (kl * C))])
        self.reset()

    def reset(self):
        self.t = 0
        self.M = np.zeros(len(self.weight)); self.N = np.zeros(len(self.weight))
        self.W = [np.full((m, self.C), 0.5) for m in self.m]

    # one-step multipliers of the 4J one-parameter components
    def _directional(self, y, z, lo, hi):
        out = []
        for j in range(self.J):
            for ex in (self.exp_b[j], 1.0 / self.exp_b[j]):
                out.append(tilt(y, lo, hi, ex))
        h = logit_clipped(z)
        for j in range(self.J):
            ex = math.exp(0.5 * self.amps[j] * h)
            for e in (ex, 1.0 / ex):
                out.append(tilt(y, lo, hi, e))
        return out

    def cells(self, z):
        u = 1.0 / (1.0 + math.exp(-logit_clipped(z) / 3.0))
        return [min(int((z if k < self.kz else u) * m), m - 1) for k, m in enumerate(self.m)]

    def step(self, z, y):
        return self.step_batch([(z, y)])

    def step_batch(self, events):
        """A batch is one super-event: exact e-value, order inside the batch is irrelevant."""
        J, C = self.J, self.C; n = len(events); t0 = self.t; self.t += n
        inj = float(n) if self.mode == 'arl' else sum(spend(t0 + i + 1) for i in range(n))
        dirprod = np.ones(4 * J)
        acc = [dict() for _ in self.m]             # per scale: cell -> [prod L+, prod L-, sum v]
        for z, y in events:
            lo, hi = bounds(z, self.tol, self.delta)
            dirprod *= self._directional(y, z, lo, hi)
            lp = np.array([tilt(y, lo, hi, e) for e in self.exp_c])
            lm = np.array([tilt(y, lo, hi, 1.0 / e) for e in self.exp_c])
            for k, c in enumerate(self.cells(z)):
                a = acc[k].setdefault(c, [np.ones(C), np.ones(C), 0.0])
                a[0] = a[0] * lp; a[1] = a[1] * lm; a[2] += z * (1.0 - z)
        e = np.empty(len(self.weight)); e[:4 * J] = dirprod
        for k in range(len(self.m)):
            prod = np.ones(C)
            for c, (lp, lm, v) in acc[k].items():
                w = self.W[k][c]
                ec = w * lp + (1.0 - w) * lm
                prod *= ec
                rho = np.minimum(RHO_MAX, self.camps ** 2 * v / self.H[k])
                self.W[k][c] = np.clip((1.0 - rho) * (w * lp / ec) + 0.5 * rho, W_EPS, 1 - W_EPS)
            e[4 * J + k * C: 4 * J + (k + 1) * C] = prod
        self.N = np.minimum(e * (self.N + inj * (t0 + 1)), M_MAX)
        self.M = np.minimum(e * (self.M + inj), M_MAX)
        self.last_e = e
        return self.log_value()

    def log_value(self):
        return math.log(float(np.dot(self.weight, self.M)))

    def alarm(self):
        return self.log_value() >= self.log_thr

    def report(self):
        """share of evidence per family, posterior-mean onset (1-based event index)"""
        J, C = self.J, self.C; c = self.weight * self.M; tot = c.sum()
        sh = dict(intercept_up=c[0:2 * J:2].sum(), intercept_down=c[1:2 * J:2].sum(),
                  slope_up=c[2 * J:4 * J:2].sum(), slope_down=c[2 * J + 1:4 * J:2].sum())
        for k in range(len(self.m)):
            sh[('z' if k < self.kz else 'l') + str(self.m[k])] = c[4 * J + k * C:4 * J + (k + 1) * C].sum()
        return {k: float(v / tot) for k, v in sh.items()}, float(np.dot(self.weight, self.N) / tot)


def logit_clipped(z):
    if z <= 0.0: return -HCLIP
    if z >= 1.0: return HCLIP
    return min(HCLIP, max(-HCLIP, math.log(z / (1.0 - z))))


# ------------------------------------------------------------------ fast kernel
try:
    import numba as nb
except ImportError:
    nb = None
if nb is not None:
    @nb.njit(cache=True)
    def _run(z, y, amps, camps, kz, kl, c, logthr, inj, tol, delta, wI, wS, wZ, wL, form, onset, rec):
        """form 0: SR, 1: CUSUM (max) with the same multipliers."""
        n = z.size; J = amps.size; C = camps.size; K = kz + kl
        nc = 4 * J + K * C
        M = np.zeros(nc); N = np.zeros(nc); om = np.zeros(nc)
        for i in range(2 * J):
            om[i] = wI / (2 * J); om[2 * J + i] = wS / (2 * J)
        for i in range(kz * C): om[4 * J + i] = wZ / (kz * C)
        for i in range(kl * C): om[4 * J + kz * C + i] = wL / (kl * C)
        off = np.zeros(K, np.int64); H = np.zeros(K); tot = 0
        for k in range(K):
            m = 2 ** ((k if k < kz else k - kz) + 1)
            off[k] = tot; tot += m
            H[k] = c * (16.0 + 4.0 * np.sqrt(float(m))) / m
        W = np.full((tot, C), 0.5)
        eb = np.exp(amps); ec = np.exp(camps); Lp = np.zeros(C); Lm = np.zeros(C)
        thr = np.exp(logthr); mx = 0.0; et = np.exp(tol)
        for t in range(n):
            zt = z[t]; yt = y[t]; a = inj[t]; v = zt * (1 - zt)
            hi = zt * et / (1 - zt + zt * et) + delta
            lo = (zt / (zt + (1 - zt) * et) if zt > 0 else 0.0) - delta
            if hi > 1: hi = 1.0
            if lo < 0: lo = 0.0
            if zt <= 0: h = -12.0
            elif zt >= 1: h = 12.0
            else: h = min(12.0, max(-12.0, np.log(zt / (1 - zt))))
            u = 1.0 / (1.0 + np.exp(-h / 3.0))
            s = 0.0
            for j in range(J):
                for sg in range(2):
                    ex = eb[j] if sg == 0 else 1.0 / eb[j]
                    p = hi if ex > 1 else lo
                    L = (ex if yt == 1 else 1.0) / (1 - p + p * ex)
                    i = 2 * j + sg
                    if onset: N[i] = min(L * (N[i] + a * (t + 1)), 1e280)
                    M[i] = L * (M[i] + a) if form == 0 else L * max(M[i], a)
                    if M[i] > 1e280: M[i] = 1e280
                    s += om[i] * M[i]
                ex0 = np.exp(0.5 * amps[j] * h)
                for sg in range(2):
                    ex = ex0 if sg == 0 else 1.0 / ex0
                    p = hi if ex > 1 else lo
                    L = (ex if yt == 1 else 1.0) / (1 - p + p * ex)
                    i = 2 * J + 2 * j + sg
                    if onset: N[i] = min(L * (N[i] + a * (t + 1)), 1e280)
                    M[i] = L * (M[i] + a) if form == 0 else L * max(M[i], a)
                    if M[i] > 1e280: M[i] = 1e280
                    s += om[i] * M[i]
            for j in range(C):
                Lp[j] = (ec[j] if yt == 1 else 1.0) / (1 - hi + hi * ec[j])
                Lm[j] = (1.0 / ec[j] if yt == 1 else 1.0) / (1 - lo + lo * (1.0 / ec[j]))
            for k in range(K):
                m = 1 << ((k if k < kz else k - kz) + 1)
                ci = int((zt if k < kz else u) * m)
                if ci >= m: ci = m - 1
                ci += off[k]
                for j in range(C):
                    w = W[ci, j]
                    e = w * Lp[j] + (1 - w) * Lm[j]
                    i = 4 * J + k * C + j
                    if onset: N[i] = min(e * (N[i] + a * (t + 1)), 1e280)
                    M[i] = e * (M[i] + a) if form == 0 else e * max(M[i], a)
                    if M[i] > 1e280: M[i] = 1e280
                    s += om[i] * M[i]
                    rho = camps[j] * camps[j] * v / H[k]
                    if rho > 0.5: rho = 0.5
                    w = (1 - rho) * (w * Lp[j] / e) + 0.5 * rho
                    if w < 1e-12: w = 1e-12
                    if w > 1 - 1e-12: w = 1 - 1e-12
                    W[ci, j] = w
            if s > mx: mx = s
            if rec.size: rec[t] = s
            if s >= thr:
                on = 0.0
                if onset:
                    for i in range(nc): on += om[i] * N[i]
                    on /= s
                return t + 1, np.log(mx), on
        return -1, np.log(mx), 0.0


def fast_run(z, y, mode='arl', A=2e6, alpha=0.05, tol=0.0, delta=0.0, amps=AMPS, camps=CAMPS, kz=KZ, kl=KL, c=FS_C,
             weights=(W_INT, W_SLOPE, W_Z, W_L), form=0, onset=False, inj=None, rec=None):
    n = len(z)
    if inj is None:
        inj = np.ones(n) if mode == 'arl' else spend(np.arange(1, n + 1, dtype=float))
    thr = math.log(A) if mode == 'arl' else math.log(1 / alpha)
    return _run(z, y.astype(np.float64), np.asarray(amps, float), np.asarray(camps, float), kz, kl, c, thr, inj,
                tol, delta, *weights, form, onset, np.empty(0) if rec is None else rec)


# ------------------------------------------------------------------ confidence sequences
def psi_e(lam, c):
    return (-np.log1p(-c * lam) - c * lam) / (c * c)


def cs_radius(V, alpha, c=1.0, G=16):
    """smallest-known r with P(exists n: S_n - n*mean_n >= r(V_n)) <= alpha, xi >= -c, V = sum xi^2.
    Discrete mixture over lam_g = 0.5/c * 2^-g, weights 1/G; Newton from the right (convex, increasing)."""
    lam = 0.5 / c * 2.0 ** -np.arange(G)
    ps = psi_e(lam, c) * V
    L = math.log(G / alpha)
    r = float(np.min((L + ps) / lam))
    for _ in range(60):
        a = lam * r - ps
        mx = a.max(); w = np.exp(a - mx); sw = w.sum()
        f = mx + math.log(sw) - L
        step = f / float((w * lam).sum() / sw)
        r -= step
        if abs(step) <= 1e-13 * max(1.0, abs(r)): break
    return r


def cs_mean(S, V, n, alpha=0.05):
    """two-sided CS for (1/n) sum (E[y_i|past]-z_i) from S = sum(y-z), V = sum(y-z)^2, n"""
    r = cs_radius(V, alpha / 2.0)
    return max(-1.0, (S - r) / n), min(1.0, (S + r) / n)


class EceLower:
    """Lower CS for (1/n) sum (p_i - z_i)^2 : Brier gain of a predictable recalibration, per scale.
    W_i = (y-z)^2-(y-q)^2 with q = z + D, |D| <= DMAX, D predictable  =>  E[W_i|past] <= (p_i-z_i)^2."""
    DMAX = 0.25; KAPPA = 20.0

    def __init__(self, kmax=6, alpha=0.05):
        self.k = kmax + 1; self.alpha = alpha; self.n = 0
        self.S = [np.zeros(2 ** k) for k in range(self.k)]; self.C = [np.zeros(2 ** k) for k in range(self.k)]
        self.SW = np.zeros(self.k); self.VW = np.zeros(self.k)

    def step(self, z, y):
        self.n += 1
        x = y - z
        for k in range(self.k):
            c = min(int(z * 2 ** k), 2 ** k - 1)
            d = self.S[k][c] / (self.C[k][c] + self.KAPPA)
            d = max(-self.DMAX, min(self.DMAX, d)); d = max(-z, min(1.0 - z, d))
            w = 2 * x * d - d * d
            self.SW[k] += w; self.VW[k] += w * w
            self.S[k][c] += x; self.C[k][c] += 1
        return self

    def lower(self):
        c = 2 * self.DMAX + self.DMAX ** 2
        return max(0.0, max((self.SW[k] - cs_radius(self.VW[k], self.alpha / self.k, c)) / self.n
                            for k in range(self.k)))


def ece2_binned_upper(S, V, n, alpha):
    """upper CS for sum_c (n_c/n) Delta_c^2 from per-cell sums (union bound over cells)"""
    m = len(S); N = sum(n); tot = 0.0
    for s, v, k in zip(S, V, n):
        if k == 0: continue
        r = cs_radius(v, alpha / (2 * m))
        tot += k / N * min(1.0, (abs(s) + r) / k) ** 2
    return tot


# ------------------------------------------------------------------ fleets
def e_bh(M, level):
    """indices rejected by e-BH: k* = max{k : M_(k) >= N/(level*k)}. With SR values use level = 1/A."""
    M = np.asarray(M); N = len(M); o = np.argsort(-M)
    ok = M[o] * np.arange(1, N + 1) * level >= N
    k = np.max(np.nonzero(ok)[0]) + 1 if ok.any() else 0
    return np.sort(o[:k])


def online_e_bh(E, gamma, alpha):
    """k* = max{k : #{i: E_i >= 1/(alpha*gamma_i*k)} >= k}"""
    x = np.sort(np.asarray(E) * np.asarray(gamma) * alpha)[::-1]
    k = 0
    for i in range(len(x), 0, -1):
        if x[i - 1] * i >= 1: k = i; break
    return [] if k == 0 else [i for i in range(len(E)) if E[i] * gamma[i] * alpha * k >= 1]


# ------------------------------------------------------------------ data
def draws(dist, n, rng):
    if dist == 'unif': z = rng.random(n)
    elif dist == 'b05_5': z = rng.beta(.5, 5, n)
    elif dist == 'b5_05': z = rng.beta(5, .5, n)
    elif dist == 'click': z = 1 / (1 + np.exp(-(math.log(.001) + 0.7 * rng.standard_normal(n))))
    else: raise ValueError(dist)
    return np.clip(z, 1e-6, 1 - 1e-6)


def zeta(x):
    o = np.zeros_like(x); i = (x > 0) & (x < 1); o[i] = np.exp(-1 / x[i] / (1 - x[i])); return o


def truth(z, name):
    """P(y=1|z) under alternative `name`"""
    lg = np.log(z / (1 - z))
    if name == 'null': return z
    if name[0] == 'T': return 1 / (1 + np.exp(-lg / float(name[1:])))
    if name.startswith('shift'): return np.clip(z + float(name[5:]), 0, 1)
    if name.startswith('odds'): return 1 / (1 + np.exp(-(lg + float(name[4:]))))
    if name[0] == 'g':     # T-Cal eq. (10) bumps, m alternating bumps on [1/4,3/4], amp = peak height
        m, amp = name[1:].split('_'); m = int(m); amp = float(amp)
        s = (-1.0) ** np.floor(2 * m * (z - .25)); r = 2 * m * (z - .25); r = r - np.floor(r)
        return np.clip(z + ((z >= .25) & (z <= .75)) * s * amp * zeta(r) * math.exp(4), 0, 1)
    raise ValueError(name)


def stream(dist, name, n, nu, seed):
    rng = np.random.default_rng(seed)
    z = draws(dist, n, rng); p = z.copy(); p[nu:] = truth(z[nu:], name)
    return z, (rng.random(n) < p).astype(np.float64)


# ------------------------------------------------------------------ baselines
if nb is not None:
    @nb.njit(cache=True)
    def tcal_stats(z, r, B, out):
        """debiased plug-in ECE^2 (T-Cal) at 2^b equal-width cells, b=1..B; z sorted ascending, r=y-z likewise"""
        n = z.size
        for b in range(1, B + 1):
            m = 2.0 ** b; acc = 0.0; i = 0
            while i < n:
                c = math.floor(z[i] * m); s = 0.0; q = 0.0; k = 0
                while i < n and math.floor(z[i] * m) == c:
                    s += r[i]; q += r[i] * r[i]; k += 1; i += 1
                acc += (s * s - q) / k
            out[b - 1] = acc / n

    @nb.njit(cache=True)
    def cusum(z, y, kappa, h):
        gp = 0.0; gm = 0.0; mx = 0.0
        for t in range(z.size):
            x = y[t] - z[t]
            gp = max(0.0, gp + x - kappa); gm = max(0.0, gm - x - kappa)
            g = max(gp, gm)
            if g > mx: mx = g
            if g >= h: return t + 1, mx
        return -1, mx

    @nb.njit(cache=True)
    def percell(z, y, amps, kz, A):
        """ablation: one SR process per (scale, cell, +-amplitude), evidence averaged instead of multiplied.
        Cells not hit only grow by the injection (refreshed when hit); the sum is checked every 16 events."""
        J = amps.size; tot = 0; off = np.zeros(kz + 1, np.int64)
        for k in range(kz + 1): off[k] = tot; tot += 2 ** k
        M = np.zeros((tot, 2 * J)); last = np.zeros(tot); val = np.zeros(tot)
        for t in range(z.size):
            zt = z[t]
            for k in range(kz + 1):
                m = 1 << k; ci = min(int(zt * m), m - 1) + off[k]
                gap = t + 1 - last[ci]; last[ci] = t + 1; s = 0.0
                for j in range(2 * J):
                    ex = np.exp(amps[j] if j < J else -amps[j - J])
                    M[ci, j] = (ex if y[t] == 1 else 1.0) / (1 - zt + zt * ex) * (M[ci, j] + gap)
                    s += M[ci, j]
                val[ci] = s / (2 * J * m * (kz + 1))
            if t % 16 == 15 and val.sum() >= A: return t + 1
        return -1

    @nb.njit(cache=True)
    def plugin(z, y, kz, A, disc, kappa):
        """ablation: one adaptive bet per cell (ridge/aGRAPA log-odds bet with discount), product over cells, SR per scale"""
        tot = 0; off = np.zeros(kz + 1, np.int64)
        for k in range(kz + 1): off[k] = tot; tot += 2 ** k
        S = np.zeros(tot); V = np.zeros(tot); M = np.zeros(kz + 1)
        for t in range(z.size):
            zt = z[t]; v = zt * (1 - zt); x = y[t] - zt; s = 0.0
            for k in range(kz + 1):
                m = 1 << k; ci = min(int(zt * m), m - 1) + off[k]
                b = S[ci] / (V[ci] + kappa)
                if b > 2: b = 2.0
                if b < -2: b = -2.0
                ex = np.exp(b)
                M[k] = (ex if y[t] == 1 else 1.0) / (1 - zt + zt * ex) * (M[k] + 1)
                s += M[k] / (kz + 1)
                g = 1 - v * m / disc
                if g < 0: g = 0.0
                S[ci] = S[ci] * g + x; V[ci] = V[ci] * g + v
            if s >= A: return t + 1
        return -1


def tcal_B(n): return int(2 * np.log2(n / np.sqrt(np.log(n))))   # scales of adaptive T-Cal


def gpd_tail(x, p):
    """upper p-quantile of sample x; generalized-Pareto fit above the 99.5% point when p is beyond the sample"""
    from scipy.stats import genpareto
    n = len(x)
    if p * n >= 20: return float(np.quantile(x, 1 - p))
    u = np.quantile(x, 0.995); e = x[x > u] - u
    if len(e) < 20 or np.ptp(e) == 0: return float(x.max()) * 1.0001 + 1e-12
    sh, _, sc = genpareto.fit(e, floc=0)
    return float(u + genpareto.isf(min(1.0, p / 0.005), sh, 0, sc))


def tcal_critical(dist, win, reps, looks, alpha=0.05, seed=7):
    """oracle critical values of adaptive T-Cal: level alpha per look, and alpha/looks"""
    B = tcal_B(win); rng = np.random.default_rng(seed); X = np.empty((reps, B))
    for i in range(reps):
        z = np.sort(draws(dist, win, rng)); r = (rng.random(win) < z) - z
        tcal_stats(z, r, B, X[i])
    return ([gpd_tail(X[:, b], alpha / B) for b in range(B)],
            [gpd_tail(X[:, b], alpha / B / looks) for b in range(B)])


def tcal_repeat(z, y, win, crits, every=500, start=0):
    """first look (event count) >= start at which each critical-value set rejects; -1 if none"""
    B = len(crits[0]); out = np.empty(B); res = [-1] * len(crits); n = len(z)
    first = max(win, start)
    first = int(math.ceil((first - win) / every) * every + win)
    for e in range(first, n + 1, every):
        zz = z[e - win:e]; o = np.argsort(zz, kind='stable'); zz = zz[o]
        tcal_stats(zz, y[e - win:e][o] - zz, B, out)
        for i, c in enumerate(crits):
            if res[i] < 0 and np.any(out > c): res[i] = e
        if all(r > 0 for r in res): break
    return res


# ------------------------------------------------------------------ experiments
if nb is not None:
    @nb.njit(cache=True)
    def oracle_sr(z, p, y, A, start):
        """SR with the true likelihood ratio, started at 0: lower bound on what any detector can do"""
        M = 0.0
        for t in range(start, z.size):
            q = p[t]; zt = z[t]
            M = (q / zt if y[t] == 1 else (1 - q) / (1 - zt)) * (M + 1)
            if M >= A: return t + 1
        return -1

    @nb.njit(cache=True)
    def cusum_after(z, y, kappa, h, nu):
        gp = 0.0; gm = 0.0
        for t in range(z.size):
            x = y[t] - z[t]
            gp = max(0.0, gp + x - kappa); gm = max(0.0, gm - x - kappa)
            if max(gp, gm) >= h:
                if t >= nu: return t + 1
                gp = 0.0; gm = 0.0
        return -1


def adwin_first(z, y, after=0, delta=0.002):
    from river import drift
    ad = drift.ADWIN(delta=delta); e = (y - z) ** 2
    for i in range(len(z)):
        ad.update(float(e[i]))
        if ad.drift_detected and i >= after: return i + 1
    return -1


CUSUM_KAPPA = 0.01


def delay_one(a):
    dist, name, n, nu, seed, crit, h, adw = a
    z, y = stream(dist, name, n, nu, seed); p = z.copy(); p[nu:] = truth(z[nu:], name)
    r = {}
    T, _, on = fast_run(z, y, A=2e6, onset=True); r['e_arl'] = T; r['onset'] = on
    r['e_pfa'] = fast_run(z, y, mode='pfa')[0]
    r['oracle'] = oracle_sr(z, p, y, 2e6, nu)
    for w in (1000, 5000):
        c = crit['%s_%d' % (dist, w)]
        a_, b_ = tcal_repeat(z, y, w, [np.array(c['level']), np.array(c['bonf'])], start=nu + 1)
        r['tcal%d' % w], r['tcalB%d' % w] = a_, b_
    r['cusum'] = cusum_after(z, y, CUSUM_KAPPA, h, nu)
    if adw: r['adwin'] = adwin_first(z, y, nu)
    return r


def fa_one(a):
    dist, n, seed, crit, adw = a
    if dist == 'drift':          # calibrated throughout, score distribution changes half way
        z1, y1 = stream('unif', 'null', n // 2, 0, seed); z2, y2 = stream('b5_05', 'null', n // 2, 0, seed + 77)
        z, y = np.concatenate([z1, z2]), np.concatenate([y1, y2])
    else:
        z, y = stream(dist, 'null', n, 0, seed)
    r = dict(cusum_max=float(cusum(z, y, CUSUM_KAPPA, 1e300)[1]))
    if dist == 'drift':
        r['mA'] = float(fast_run(z, y, A=1e300)[1]); r['mP'] = float(fast_run(z, y, mode='pfa', alpha=1e-300)[1])
    else:
        for w in (1000, 5000):
            c = crit['%s_%d' % (dist, w)]
            r['tcal%d' % w], r['tcalB%d' % w] = tcal_repeat(z, y, w, [np.array(c['level']), np.array(c['bonf'])])
    if adw: r['adwin'] = adwin_first(z, y)
    return r


# ------------------------------------------------------------------ traffic-weighted composite nulls
if nb is not None:
    @nb.njit(cache=True)
    def sr_weighted(z, y, kind, bound, kmax, A, lams, disc, rec):
        """SR e-detectors for traffic-weighted nulls (conditional on the past, averaged over z_t):
        kind 1:  E|E[y-z|z]| <= bound     e = 1 + lam*(g*x - bound), g in [-1,1] predictable, x = y-z
        kind 2:  E(E[y-z|z])^2 <= bound   e = 1 + lam*(2*x*D - D^2 - bound), D predictable, |D| <= 1/4
        g, D from discounted cell sums at each dyadic scale 2^0..2^kmax; uniform mixture over scale x lam."""
        tot = 2 ** (kmax + 1) - 1; nl = lams.size
        S = np.zeros(tot); V = np.zeros(tot); Cn = np.zeros(tot); M = np.zeros((kmax + 1, nl))
        for t in range(z.size):
            x = y[t] - z[t]; s = 0.0
            for k in range(kmax + 1):
                m = 1 << k; ci = min(int(z[t] * m), m - 1) + m - 1
                if kind == 1:
                    g = min(1.0, max(-1.0, 0.5 * S[ci] / np.sqrt(V[ci] + 1.0))); w = g * x
                else:
                    d = S[ci] / (Cn[ci] + 20.0); d = min(0.25, max(-0.25, d)); d = min(1.0 - z[t], max(-z[t], d))
                    w = 2 * x * d - d * d
                for i in range(nl):
                    M[k, i] = (1 + lams[i] * (w - bound)) * (M[k, i] + 1); s += M[k, i]
                S[ci] = S[ci] * disc + x; V[ci] = V[ci] * disc + x * x; Cn[ci] = Cn[ci] * disc + 1
            s /= nl * (kmax + 1)
            if rec.size: rec[t] = s
            if s >= A: return t + 1
        return -1

    @nb.njit(cache=True)
    def ece_path(z, y, K, times, SW, VW):
        """EceLower sums at the given event counts"""
        tot = 2 ** K - 1; S = np.zeros(tot); C = np.zeros(tot); a = np.zeros(K); b = np.zeros(K); q = 0
        for t in range(z.size):
            x = y[t] - z[t]
            for k in range(K):
                m = 1 << k; ci = min(int(z[t] * m), m - 1) + m - 1
                d = S[ci] / (C[ci] + 20.0); d = min(0.25, max(-0.25, d)); d = min(1.0 - z[t], max(-z[t], d))
                w = 2 * x * d - d * d; a[k] += w; b[k] += w * w; S[ci] += x; C[ci] += 1
            if q < times.size and t + 1 == times[q]:
                SW[q] = a; VW[q] = b; q += 1


# ------------------------------------------------------------------ self test and golden vectors
def one_step_means(mon, z, p):
    """conditional mean of every component multiplier at the current state if P(y=1)=p"""
    import copy
    e = []
    for y in (0.0, 1.0):
        m = copy.deepcopy(mon); m.step(z, y); e.append(m.last_e)
    return (1 - p) * e[0] + p * e[1]


def selftest():
    z, y = stream('unif', 'T1.5', 3000, 1000, 1)
    for tol, delta, mode in [(0, 0, 'arl'), (0.05, 0, 'arl'), (0, 0.02, 'pfa')]:
        mon = Monitor(mode=mode, tol=tol, delta=delta); T = -1; mx = -1e9
        for i in range(3000):
            v = mon.step(z[i], y[i]); mx = max(mx, v)
            if v >= mon.log_thr: T = i + 1; break
        f = fast_run(z, y, mode=mode, tol=tol, delta=delta, onset=True)
        assert T == f[0] and abs(mx - f[1]) < 1e-11 and abs(mon.report()[1] - f[2]) < 1e-6, (T, mx, f)
    mon = Monitor()
    for i in range(500): mon.step(z[i], y[i])
    for q in (1e-6, .001, .1, .5, .93, 1 - 1e-6):
        assert np.allclose(one_step_means(mon, q, q), 1.0, atol=1e-12)
    mon = Monitor(tol=.1, delta=.01)
    for i in range(500): mon.step(z[i], y[i])
    for q in (.001, .1, .5, .93):
        lo, hi = bounds(q, .1, .01)
        for p in np.linspace(lo, hi, 7): assert np.all(one_step_means(mon, q, p) <= 1 + 1e-12)
    a, b = Monitor(), Monitor(); ev = list(zip(z[:300], y[:300]))
    for i in range(0, 300, 30):
        a.step_batch(ev[i:i + 30]); b.step_batch(ev[i:i + 30][::-1])
    assert abs(a.log_value() - b.log_value()) < 1e-12
    print('selftest ok')


def golden(path):
    rng = np.random.default_rng(20240607)
    zA = np.round(rng.random(200), 6); pA = zA.copy(); pA[100:] = truth(zA[100:], 'T2')
    zB = np.round(np.clip(rng.beta(.5, 5, 200), 1e-6, 1 - 1e-6), 6); pB = np.clip(zB * 1.8, 0, 1)
    zC = np.round(draws('click', 200, rng) * 20, 6); pC = np.clip(zC + .03, 0, 1)
    yA, yB, yC = ((rng.random(200) < p).astype(float) for p in (pA, pB, pC))
    zB[20], yB[20] = 0.0, 0.0; zB[40], yB[40] = 1.0, 1.0; zB[60], yB[60] = 0.0, 1.0; yB[80] = 0.5; zB[90] = 0.5
    J, C = len(AMPS), len(CAMPS)
    comp = dict(intercept_up_b0_25=6, slope_down_b0_25=2 * J + 7, z8_b0_25=4 * J + 2 * C + 2,
                l4_b0_5=4 * J + KZ * C + C + 3)
    out = dict(note='M and log M after each event (reset state before the first); log = natural. '
                    'log_e_mix = log sum_c weight_c e_c. onset = sum weight*N / sum weight*M.',
               constants=dict(amps=AMPS.tolist(), camps=CAMPS.tolist(), kz=KZ, kl=KL, w=[W_INT, W_SLOPE, W_Z, W_L],
                              hclip=HCLIP, fs=[FS_C, FS_A, FS_B], rho_max=RHO_MAX, w_eps=W_EPS, s0=S0, m_max=M_MAX),
               component_index=comp, streams=[])
    for name, z, y, tol, delta in (('uniform_T2_from_101', zA, yA, 0.0, 0.0), ('beta_edges_tol', zB, yB, 0.05, 0.0),
                                   ('low_rate_delta', zC, yC, 0.0, 0.01)):
        m1, m2 = Monitor('arl', tol=tol, delta=delta), Monitor('pfa', tol=tol, delta=delta)
        r = dict(name=name, tol=tol, delta=delta, z=z.tolist(), y=y.tolist(), log_arl=[], log_pfa=[], onset=[],
                 log_e_mix=[], **{'log_e_' + k: [] for k in comp})
        for a, b in zip(z, y):
            r['log_arl'].append(m1.step(float(a), float(b))); r['log_pfa'].append(m2.step(float(a), float(b)))
            r['onset'].append(m1.report()[1]); r['log_e_mix'].append(float(np.log(np.dot(m1.weight, m1.last_e))))
            for k, i in comp.items(): r['log_e_' + k].append(float(np.log(m1.last_e[i])))
        r['final_M_arl'] = m1.M.tolist(); r['final_W_z8'] = m1.W[2].tolist(); r['final_share'] = m1.report()[0]
        mb = Monitor('arl', tol=tol, delta=delta); r['batch10_log_arl'] = []
        for i in range(0, 200, 10):
            r['batch10_log_arl'].append(mb.step_batch([(float(a), float(b)) for a, b in zip(z[i:i + 10], y[i:i + 10])]))
        x = y - z; r['cs'] = []; el = EceLower()
        for i in range(200):
            el.step(float(z[i]), float(y[i])); n = i + 1
            if n % 50 == 0:
                c = np.minimum((z[:n] * 8).astype(int), 7)
                S, V, N = (np.bincount(c, w, 8) for w in (x[:n], x[:n] ** 2, np.ones(n)))
                r['cs'].append(dict(n=n, S=float(x[:n].sum()), V=float((x[:n] ** 2).sum()),
                                    mean95=cs_mean(x[:n].sum(), (x[:n] ** 2).sum(), n),
                                    ece2_lower_SW=el.SW.tolist(), ece2_lower_VW=el.VW.tolist(), ece2_lower95=el.lower(),
                                    ece2_upper95_8bins=ece2_binned_upper(S, V, N, 0.05)))
        out['streams'].append(r)
    out['cs_radius'] = [dict(V=v, alpha=a, c=c, r=cs_radius(v, a, c)) for v in (0.0, 1.0, 50.0, 1e4, 1e7)
                        for a in (.05, .001) for c in (1.0, .5625)]
    M = [5e6, 1e3, 8e5, 2e7, 40.0, 1.2e6]
    out['e_bh'] = [dict(M=M, A=A, rejected=e_bh(M, 1 / A).tolist()) for A in (1e6, 1e7, 3e6)]
    E = [3.0, 900.0, 1e5, 50.0, 2e4]; g = [6 / math.pi ** 2 / (i + 1) ** 2 for i in range(5)]
    out['online_e_bh'] = [dict(E=E, gamma=g, alpha=al, rejected=online_e_bh(E, g, al)) for al in (.1, .01, .001)]
    json.dump(out, open(path, 'w'), separators=(',', ':'))


if __name__ == '__main__':
    cmd = sys.argv[1] if len(sys.argv) > 1 else 'selftest'
    if cmd == 'selftest': selftest()
    elif cmd == 'golden': golden(sys.argv[2])
    elif cmd == 'fa':        # fa DIST REPS : P(false alarm within 1e5 events)
        x = np.array([[fast_run(*stream(sys.argv[2], 'null', 100000, 0, 10 ** 6 + i), A=1e300)[1],
                       fast_run(*stream(sys.argv[2], 'null', 100000, 0, 10 ** 6 + i), mode='pfa', alpha=1e-300)[1]]
                      for i in range(int(sys.argv[3]))])
        print('ARL A=2e6', (x[:, 0] >= math.log(2e6)).mean(), 'PFA .05', (x[:, 1] >= math.log(20)).mean())
    elif cmd == 'delay':     # delay DIST ALT REPS : mean delay after a change at 20000, A = 2e6
        d = [fast_run(*stream(sys.argv[2], sys.argv[3], 100000, 20000, 5 * 10 ** 6 + i))[0] for i in range(int(sys.argv[4]))]
        d = np.array([t - 20000 if t > 0 else 80000 for t in d if t < 0 or t > 20000]); print(d.mean(), d.std() / len(d) ** .5)
