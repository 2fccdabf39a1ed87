#!/usr/bin/env python3
"""Golden values of the distances from calibration and the kernel tests, for distance.rs and kernel.rs: writes
kernel_distance.json, or the path given.
Straightforward numpy/scipy: O(n^2) sums, linprog (HiGHS), subset DP, exhaustive enumeration.
Deterministic; a minute on one core."""
import json, math, os, sys, heapq, itertools
from collections import deque
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.special import gammaincc
from scipy.stats import norm, chi2

OUT = sys.argv[1] if len(sys.argv) > 1 else 'kernel_distance.json'
HI = dict(primal_feasibility_tolerance=1e-10, dual_feasibility_tolerance=1e-10)
CHECKS = []
def check(name, err, tol):
    CHECKS.append((name, float(err), tol)); assert err <= tol, (name, err, tol)

# ------------------------------------------------------------------ helpers
def agg(v, w):
    u, inv = np.unique(np.asarray(v, float), return_inverse=True)
    return u, np.bincount(inv.ravel(), weights=w, minlength=len(u))

# ------------------------------------------------------------------ smooth calibration
def smce_lp(v, r):
    u, R = agg(v, r); m = len(u)
    if m == 1: return abs(float(R[0]))
    d = np.diff(u)
    D = sp.diags([-np.ones(m-1), np.ones(m-1)], [0, 1], shape=(m-1, m), format='csr')
    res = linprog(-R, A_ub=sp.vstack([D, -D], format='csr'), b_ub=np.r_[d, d], bounds=(-1, 1), method='highs', options=HI)
    assert res.status == 0
    return float(-res.fun)

def smce_path(v, r):
    """slope-trick DP, exact up to rounding."""
    u, R = agg(v, r); m = len(u); INF = math.inf
    L = deque([(-1.0, INF)]); Q = deque([(1.0, INF)]); oL = oR = 0.0; arg = []
    for k in range(m):
        c = R[k]; rem = abs(c)
        while rem > 0:
            if c > 0:
                p, dr = Q[0]; x = p + oR
                if dr <= rem: Q.popleft(); L.append((x - oL, dr)); rem -= dr
                else:
                    if dr != INF: Q[0] = (p, dr - rem)
                    L.append((x - oL, rem)); rem = 0
            else:
                p, dr = L[-1]; x = p + oL
                if dr <= rem: L.pop(); Q.appendleft((x - oR, dr)); rem -= dr
                else:
                    if dr != INF: L[-1] = (p, dr - rem)
                    Q.appendleft((x - oR, rem)); rem = 0
        arg.append((L[-1][0] + oL, Q[0][0] + oR))
        if k + 1 < m:
            d = u[k+1] - u[k]; oL -= d; oR += d
            L.popleft()
            while L and L[0][0] + oL <= -1: L.popleft()
            L.appendleft((-1 - oL, INF)); Q.pop()
            while Q and Q[-1][0] + oR >= 1: Q.pop()
            Q.append((1 - oR, INF))
    w = np.empty(m); w[-1] = min(max(0.0, arg[-1][0]), arg[-1][1])
    for k in range(m-2, -1, -1):
        d = u[k+1] - u[k]; a, b = arg[k]
        w[k] = min(max(min(max(w[k+1], a), b), w[k+1] - d), w[k+1] + d)
    return float(R @ w)

# ------------------------------------------------------------------ lower distance
def dce_lp_U(U, g0, g1):
    m = len(U); d = np.diff(U)
    D = sp.diags([-np.ones(m-1), np.ones(m-1)], [0, 1], shape=(m-1, m), format='csr'); Z = sp.csr_matrix((m-1, m))
    A = sp.vstack([sp.hstack([D, Z]), sp.hstack([-D, Z]), sp.hstack([Z, D]), sp.hstack([Z, -D]),
                   sp.hstack([sp.diags(1-U), sp.diags(U)])], format='csr')
    res = linprog(-np.r_[g0, g1], A_ub=A, b_ub=np.r_[d, d, d, d, np.zeros(m)], bounds=(-1, 1), method='highs', options=HI)
    assert res.status == 0
    return float(-res.fun), res.x[:m], res.x[m:]

def dce_primal_U(U, V, g0, g1):
    """the paper's primal LP (17), for cross-checks on small instances."""
    nu, nv = len(U), len(V); c = np.abs(U[:, None] - V[None, :]).ravel()
    idx = np.arange(nu*nv).reshape(nu, nv); A = np.zeros((2*nv + nu, 2*nu*nv)); b = np.zeros(2*nv + nu)
    for j in range(nv):
        A[j, idx[:, j]] = 1; b[j] = g0[j]; A[nv+j, nu*nv + idx[:, j]] = 1; b[nv+j] = g1[j]
    for i in range(nu):
        A[2*nv+i, nu*nv + idx[i]] = 1 - U[i]; A[2*nv+i, idx[i]] = -U[i]
    res = linprog(np.r_[c, c], A_eq=A, b_eq=b, bounds=(0, None), method='highs', options=HI)
    assert res.status == 0
    return float(res.fun)

def dce_barrier(U, g0, g1, tol=1e-9, shrink=0.2):
    """reduced dual by a log barrier; Newton system is block tridiagonal (2x2), O(m) per step."""
    m = len(U); d = np.diff(U)[:, None]; G = np.stack([g0, g1], 1); a = np.stack([1-U, U], 1)
    x = np.full((m, 2), -0.25); M = 5*m - 4; mu = 1.0/M
    def slk(x): df = np.diff(x, axis=0); return d - df, d + df, -(a*x).sum(1)
    def obj(x):
        s = slk(x); return -math.inf if min(t.min() for t in s) <= 0 else (G*x).sum() + mu*sum(np.log(t).sum() for t in s)
    while True:
        for _ in range(60):
            p, q, c = slk(x); g = G.copy(); e = mu*(1/q - 1/p); g[1:] += e; g[:-1] -= e; g -= mu*a/c[:, None]; h = mu*(1/p**2 + 1/q**2)
            D = mu*(a[:, :, None]*a[:, None, :])/(c**2)[:, None, None]
            for k in range(2): D[1:, k, k] += h[:, k]; D[:-1, k, k] += h[:, k]
            y = g.copy(); C = D.copy()                       # forward elimination; off-diagonal blocks are -diag(h_i)
            for i in range(1, m):
                K = -h[i-1][:, None]*np.linalg.inv(C[i-1]); C[i] = C[i] + K*h[i-1][None, :]; y[i] = y[i] - K @ y[i-1]
            y[m-1] = np.linalg.solve(C[m-1], y[m-1])
            for i in range(m-2, -1, -1): y[i] = np.linalg.solve(C[i], y[i] + h[i]*y[i+1])
            dec = (g*y).sum(); t = 1.0; f0 = obj(x)
            while t > 1e-14 and obj(x + t*y) < f0 + 1e-4*t*dec: t *= .5
            x = x + t*y
            if dec < mu*1e-2: break
        if M*mu < tol: return float((G*x).sum()), M*mu
        mu *= shrink

def laplace_tree(v, r, nu=1.0):
    """mergeable exact sum r_i r_j exp(-|v_i-v_j|/nu): fold of the (lo,hi,M,P,Q) monoid."""
    e = lambda t: math.exp(-t/nu)
    def merge(A, B):
        return (A[0], B[1], A[2] + B[2]*e(B[0]-A[0]), B[3] + A[3]*e(B[1]-A[1]), A[4] + B[4] + 2*A[3]*e(B[0]-A[1])*B[2])
    L = [(v[i], v[i], r[i], r[i], r[i]*r[i]) for i in np.argsort(v, kind='stable')]
    while len(L) > 1: L = [merge(L[i], L[i+1]) if i+1 < len(L) else L[i] for i in range(0, len(L), 2)]
    return float(L[0][4])

def gamma_on(U, v, y):
    i = np.searchsorted(U, v); assert np.all(U[i] == v); n = len(v)
    return (np.bincount(i[y == 0], minlength=len(U))/n, np.bincount(i[y == 1], minlength=len(U))/n)

def _gap_max(a, b, r0a, r0b, r1a, r1b):
    ks = [min(max(0.5*((a + b) + (p - q)), a), b) for p, q in ((r0a, r0b), (r1a, r1b))]
    rs = lambda u, p, q: max(p - (u - a), q - (b - u))
    g = lambda u: (1-u)*rs(u, r0a, r0b) + u*rs(u, r1a, r1b)
    cand = [a, b] + ks; lo, hi = min(ks), max(ks)
    if hi > lo:
        s0, s1 = (1, -1) if ks[0] < ks[1] else (-1, 1); mid = 0.5*(lo + hi)
        c0 = rs(mid, r0a, r0b) - s0*mid; c1 = rs(mid, r1a, r1b) - s1*mid
        if s1 - s0 < 0:
            us = (s0 - c0 + c1)/(2*(s0 - s1))
            if lo < us < hi: cand.append(us)
    vals = [g(c) for c in cand]; j = int(np.argmax(vals)); return vals[j], cand[j]

def dce_exact(v, y, tol=1e-13, maxit=80):
    """semi-infinite dual LP by cutting planes; returns (value, certified gap)."""
    U = np.unique(np.r_[v, 0., 1.])
    for _ in range(maxit):
        g0, g1 = gamma_on(U, v, y); val, r0, r1 = dce_lp_U(U, g0, g1); new = []; worst = 0.
        for i in range(len(U)-1):
            q, u = _gap_max(U[i], U[i+1], r0[i], r0[i+1], r1[i], r1[i+1])
            worst = max(worst, q)
            if q > tol and np.min(np.abs(U - u)) > 1e-13: new.append(u)
        if not new: break
        U = np.unique(np.r_[U, new])
    return val, max(worst, 0.)

def upper_by_subsets(vals, cnt, pos, n):
    """min over set partitions of the atoms of sum |v - mean(y|group)|: subset DP, O(3^m)."""
    m = len(vals); full = (1 << m) - 1; cost = np.zeros(1 << m)
    for S in range(1, 1 << m):
        I = [i for i in range(m) if S >> i & 1]; p = pos[I].sum()/cnt[I].sum()
        cost[S] = (cnt[I]*np.abs(vals[I] - p)).sum()/n
    best = np.full(1 << m, math.inf); best[0] = 0
    for S in range(1, 1 << m):
        low = S & -S; rest = S ^ low; T = rest
        while True:
            c = cost[T | low] + best[rest ^ T]
            if c < best[S]: best[S] = c
            if T == 0: break
            T = (T - 1) & rest
    return float(best[full])

# ------------------------------------------------------------------ interval calibration
def levels(v, y):
    u, inv = np.unique(v, return_inverse=True); inv = inv.ravel()
    return u, np.bincount(inv, minlength=len(u)).astype(float), np.bincount(inv, weights=y, minlength=len(u))

def intce_exact(v, y):
    u, c, p = levels(v, y); n = len(v); m = len(u)
    C = np.r_[0, np.cumsum(c)]; S = np.r_[0, np.cumsum(p - c*u)]; F = np.full(m+1, math.inf); F[0] = 0
    for j in range(m):
        i = np.arange(j+1)
        F[j+1] = np.min(F[i] + np.abs(S[j+1] - S[i])/n + (C[j+1] - C[i])/n*(u[j] - u[i]))
    return float(F[m])

def rint_ce(v, r, k):
    """RintCE(empirical, 2^-k) exactly: the integrand is piecewise constant in the shift."""
    n = len(v); s = v*2.0**k; j = np.floor(s).astype(np.int64); f = s - j
    B = {}
    for a, b in zip(j, r): B[int(a)] = B.get(int(a), 0.) + b/n
    tot = sum(abs(x) for x in B.values()); o = np.argsort(f, kind='stable'); prev = 0.; acc = 0.
    for i in o:
        acc += tot*(f[i] - prev); prev = f[i]; a = int(j[i]); w = r[i]/n
        for key, dw in ((a, -w), (a-1, w)):
            old = B.get(key, 0.); B[key] = old + dw; tot += abs(B[key]) - abs(old)
    return float(acc + tot*(1 - prev))

def rint_ce_slow(v, r, k):
    n = len(v); e = 2.0**-k; br = np.unique(np.r_[0, np.mod(v, e), e]); acc = 0.
    for a, b in zip(br[:-1], br[1:]):
        q = np.floor((v - 0.5*(a+b))/e); acc += (b-a)*sum(abs(r[q == t].sum())/n for t in np.unique(q))
    return float(acc/e)

def sintce(v, y, r):
    ece = float(np.abs(levels(v, y)[2] - levels(v, y)[1]*levels(v, y)[0]).sum()/len(v))
    R = [rint_ce(v, r, k) for k in range(9)]
    kstar = min(R[k] + 2.0**-k for k in range(9))           # eps=0.01 -> k*=8
    u = np.unique(v); g = np.min(np.diff(u)) if len(u) > 1 else 1.0
    best = ece; k = 0
    while True:
        Rk = R[k] if k < 9 else rint_ce(v, r, k)
        best = min(best, Rk + 2.0**-k)
        if Rk >= best or 2.0**-k <= g or k > 52: break      # Claim B.1: later terms cannot improve
        k += 1
    return R, kstar, best, ece

# ------------------------------------------------------------------ ECE binnings
def ece_bins(v, r, idx, nb):
    n = len(v); b = np.bincount(idx, weights=r, minlength=nb); c = np.bincount(idx, minlength=nb)
    g = np.abs(b)/np.maximum(c, 1); return float(np.abs(b).sum()/n), float(g.max())

# ------------------------------------------------------------------ kernel statistics
def full_matrix_median(D): return float(np.median(D))
def offdiag_median(D): return float(np.median(D[np.triu_indices(len(D), 1)]))

def skce_block(H, B):
    n = len(H); nb = n//B; x = []
    for b in range(nb):
        S = H[b*B:(b+1)*B, b*B:(b+1)*B]; x.append((S.sum() - np.trace(S))/(B*(B-1)))
    return np.array(x)

def kernel_outputs(H, n, B, boot, extra=None):
    o = {}; dg = np.trace(H); tot = H.sum()
    o['skce_b'] = tot/n**2; o['skce_uq'] = (tot - dg)/(n*(n-1)); o['kce'] = math.sqrt(max(o['skce_b'], 0))
    h = H[np.arange(0, n-1, 2), np.arange(1, n, 2)]; nl = n//2
    o['skce_ul'] = h.mean(); s1 = h.std(ddof=1); s0 = h.std()
    o['sigma_ul_ddof1'] = s1
    if s1 > 0:
        z = math.sqrt(nl)*o['skce_ul']/s1; o['z_ul'] = z; o['p_A_l'] = norm.sf(z)
        o['p_A_l_ddof0'] = norm.sf(math.sqrt(nl)*o['skce_ul']/s0)
    else: o['z_ul'] = o['p_A_l'] = o['p_A_l_ddof0'] = None
    x = skce_block(H, 4); o['skce_block4'] = x.mean()
    if len(x) > 1 and x.std(ddof=1) > 0:
        o['z_block4'] = x.mean()/(x.std(ddof=1)/math.sqrt(len(x))); o['p_block4'] = norm.sf(o['z_block4'])
    else: o['z_block4'] = o['p_block4'] = None
    o['bound_B'] = B
    o['p_D_b'] = math.exp(-0.5*max(0., math.sqrt(n*max(o['skce_b'], 0)/B) - 1)**2)
    for q in ('uq', 'ul'):
        t = o['skce_'+q]; o['p_D_'+q] = math.exp(-nl*t*t/(2*B*B)) if t > 0 else 1.0
    la = math.sqrt(-2*math.log(.05))
    o['thr05_kce_b'] = math.sqrt(B/n)*(1 + la); o['thr05_uq_ul'] = B/math.sqrt(nl)*la
    o['kce_ci05_halfwidth'] = 2*math.sqrt(B/n) + math.sqrt(2*B*math.log(20)/n)
    o['uq_statistic'] = n/(n-1)*o['skce_uq'] - o['skce_b']
    T = []
    for ix in boot:
        C = np.bincount(ix, minlength=n).astype(float)
        T.append(float((C[:, None]*((n/(n-1))*(C[None, :] - np.eye(n)) - 2)*H).sum()/n**2))
    o['uq_boot_T'] = T; o['uq_boot_p'] = float(np.mean(np.array(T) >= o['uq_statistic']))
    o['null_sum_lambda'] = dg/n; o['null_sum_lambda_sq'] = float((H*H).sum()/n**2)
    o['var_uq_null_hat'] = 2*((H*H).sum() - (np.diag(H)**2).sum())/(n*(n-1))**2
    if extra: o.update(extra)
    return o

def null_moments_binary(v, K):
    """exact moments of the statistics given the predictions, under strong calibration (derived)."""
    n = len(v); s = v*(1-v); d = np.diag(K); O = (K*K)*np.outer(s, s); off = O.sum() - np.trace(O)
    mean = (d*s).sum(); var = (d*d*s*(1-2*v)**2).sum() + 2*off
    return dict(h0_mean_skce_b=mean/n**2, h0_var_skce_b=var/n**4, h0_var_skce_uq=2*off/(n*(n-1))**2, h0_var_skce_ul=pair_var(O)), mean, var

def pair_var(O):
    n = len(O); return O[np.arange(0, n-1, 2), np.arange(1, n, 2)].sum()/(n//2)**2

def null_moments_multi(P, K):
    n = len(P); S = [np.diag(p) - np.outer(p, p) for p in P]; F = np.array([s.ravel() for s in S])
    O = (K*K)*(F @ F.T); off = O.sum() - np.trace(O); d = np.diag(K)
    q = 1 - (P*P).sum(1); mean = (d*q).sum()
    e = np.array([(P[i]*(1 - 2*P[i] + (P[i]**2).sum() - q[i])**2).sum() for i in range(n)])  # Var of |e_y-p|^2
    var = (d*d*e).sum() + 2*off
    return dict(h0_mean_skce_b=mean/n**2, h0_var_skce_b=var/n**4, h0_var_skce_uq=2*off/(n*(n-1))**2, h0_var_skce_ul=pair_var(O)), mean, var

def gamma_p(stat_n2, mean, var):
    if var <= 0: return None
    return float(gammaincc(mean*mean/var, stat_n2*mean/var))

# ------------------------------------------------------------------ Julia transliterations (cross-check only)
def julia_unsafe_skce_eval(kfun, p, y, q, t):
    m = len(p); res = 0.
    for i in range(m):
        for j in range(m):
            res += kfun(p, i, q, j)*((1. if i == y else 0.) - p[i])*((1. if j == t else 0.) - q[j])
    return res

def median_variance_bins(P, minsize):
    n = len(P); mv = lambda ix: (lambda s: (s.max(), int(np.argmax(s))))(P[ix].var(0, ddof=1))
    if n < 2*minsize: return [np.arange(n)]
    out = []; q = []; c = 0; v, d = mv(np.arange(n)); heapq.heappush(q, (-v, c, np.arange(n), d))
    while q:
        _, _, ix, d = heapq.heappop(q); o = ix[np.argsort(P[ix, d], kind='stable')]; x = P[o, d]; m = len(o)//2
        cut = m if x[m-1] < x[m] else int(np.searchsorted(x[:m], x[m], side='left'))
        lo, hi = o[:cut], o[cut:]
        if len(lo) < minsize or len(hi) < minsize: out.append(ix); continue
        for s in (lo, hi):
            if len(s) < 2*minsize: out.append(s)
            else: c += 1; v, dd = mv(s); heapq.heappush(q, (-v, c, s, dd))
    return out

def ece_tv(P, y, groups):
    Y = np.eye(P.shape[1])[y]; n = len(P)
    return float(sum(len(g)/n*0.5*np.abs(P[g].mean(0) - Y[g].mean(0)).sum() for g in groups))

def uniform_groups(P, nb):
    b = np.ceil(P*nb).astype(int); b[P == 0] = 1
    _, inv = np.unique(b, axis=0, return_inverse=True); inv = inv.ravel()
    return [np.flatnonzero(inv == t) for t in range(inv.max()+1)]

# ------------------------------------------------------------------ per data set
OMEGA = [0.1, 0.5, 1.0, 2.0, 5.0, 12.0]
DELTA_TAU = [(0.3, 0.1), (0.7, 0.65), (1.5, 0.2), (3.0, 2.9), (0.05, 0.01)]

def binary_outputs(name, v, y, boot, cr=None, tiny=False):
    n = len(v); r = y - v; o = {}
    D = np.abs(v[:, None] - v[None, :]); rr = np.outer(r, r)
    med = full_matrix_median(D); medo = offdiag_median(D)
    o['bandwidth_median_full_matrix'] = med; o['bandwidth_median_offdiag'] = medo
    ker = {'laplace_nu1': np.exp(-D), 'laplace_nu0.1': np.exp(-D/0.1), 'gauss_exp_minus_d2': np.exp(-D*D)}
    if med > 0: ker['laplace_median'] = np.exp(-D/med)
    o['kernel'] = {}
    for kn, K in ker.items():
        m, a, b = null_moments_binary(v, K); H = rr*K
        m['h0_gamma_p_skce_b'] = gamma_p(H.sum(), a, b)
        m['h0_mcdiarmid_p_kce'] = math.exp(-2*n*max(0., math.sqrt(max(H.sum(), 0))/n - math.sqrt(a)/n)**2)
        o['kernel'][kn] = kernel_outputs(H, n, 1.0, boot, m)
    # fast O(n log n) Laplace sum
    def fast(nu):
        q = np.argsort(v, kind='stable'); A = 0.; t = 0.; pr = None
        for i in q:
            if pr is not None: A *= math.exp((pr - v[i])/nu)
            t += r[i]*r[i] + 2*r[i]*A; A += r[i]; pr = v[i]
        return t/n**2
    for kn, nu in (('laplace_nu1', 1.), ('laplace_nu0.1', .1)): check(f'{name} fast {kn}', abs(fast(nu) - o['kernel'][kn]['skce_b']), 1e-14)
    check(f'{name} laplace tree', abs(laplace_tree(v, r)/n**2 - o['kernel']['laplace_nu1']['skce_b']), 1e-14)
    # matrix-valued (2-class) embedding = 2 x scalar
    P2 = np.stack([1-v, v], 1); A2 = np.eye(2)[y] - P2; H2 = (A2 @ A2.T)*ker['laplace_nu1']
    check(f'{name} 2-class embedding', np.abs(H2 - 2*rr*ker['laplace_nu1']).max(), 1e-15)
    # random-feature estimators with fixed randomness (paper 2, Alg. 1 and 2)
    o['rff'] = []
    for w in OMEGA:
        c, s = (r*np.cos(w*v)).sum(), (r*np.sin(w*v)).sum()
        o['rff'].append(dict(omega=w, re=c, im=-s, value=(c*c + s*s)/n**2))    # R = sum (y-v) exp(-i w v)
    o['binning_features'] = []
    for d, t in DELTA_TAU:
        k = np.floor((v + t)/d).astype(int); o['binning_features'].append(dict(delta=d, tau=t, value=float((np.bincount(k, weights=r)**2).sum()/n**2)))
    o['cosine_series'] = []
    for KK in (8, 32, 128):
        k = np.arange(KK+1); c = np.where(k == 0, 1 - math.exp(-1), 2*(1 - (-1.0)**k*math.exp(-1))/(1 + (k*math.pi)**2))
        a = (r[None, :]*np.cos(math.pi*k[:, None]*v)).sum(1); b = (r[None, :]*np.sin(math.pi*k[:, None]*v)).sum(1)
        val = float((c*(a*a + b*b)).sum()/n**2); o['cosine_series'].append(dict(K=KK, value=val))
        ex = o['kernel']['laplace_nu1']['skce_b']
        check(f'{name} cosine K={KK}', max(val - ex, ex - val - 0.2772/KK*np.abs(r).mean()**2, 0), 1e-14)
    # smooth calibration
    lp, pa = smce_lp(v, r/n), smce_path(v, r/n); check(f'{name} smce LP vs slope trick', abs(lp - pa), 1e-10)
    o['smce'] = pa
    o['h0_mcdiarmid_p_smce'] = math.exp(-2*n*max(0., pa - math.sqrt(2*(v*(1-v)).sum())/n)**2)
    # distances
    val, gap = dce_exact(v, y); o['dce_lower'] = val; o['dce_lower_gap'] = gap
    U = np.unique(np.r_[v, 0., 1.]); g0, g1 = gamma_on(U, v, y); o['dce_lower_U_eq_V01'] = dce_lp_U(U, g0, g1)[0]
    U = np.unique(np.r_[v, np.arange(257)/256.]); g0, g1 = gamma_on(U, v, y); dU = dce_lp_U(U, g0, g1)[0]; o['dce_lower_U_V_grid256'] = dU
    check(f'{name} grid lemma h^2/2', max(val - dU - 1e-9, dU - val - 0.5/256**2, 0), 1e-9)
    if n <= 8:
        V = np.unique(v); Us = np.unique(np.r_[v, np.arange(33)/32.]); a0, a1 = gamma_on(V, v, y); b0, b1 = gamma_on(Us, v, y)
        check(f'{name} dCE primal(17) = reduced dual', abs(dce_primal_U(Us, V, a0, a1) - dce_lp_U(Us, b0, b1)[0]), 1e-10)
        o['dce_true_if_all_x_distinct'] = upper_by_subsets(v.copy(), np.ones(n), y.astype(float), n)
    u, c, p = levels(v, y)
    if len(u) <= 11: o['dce_upper'] = upper_by_subsets(u, c, p, n)
    o['intce'] = intce_exact(v, y)
    R, ks, inf_, ece = sintce(v, y, r); o['rintce_2^-k_k0..8'] = R; o['sintce_eps0.01'] = ks; o['sintce_inf'] = inf_; o['ece_levels'] = ece
    for k in (0, 3): check(f'{name} rintce sweep vs slow', abs(R[k] - rint_ce_slow(v, r, k)), 1e-12)
    check(f'{name} RintCE monotone', max(0, max(R[k] - R[k+1] for k in range(8))), 1e-12)
    # binned ECE
    o['ece_bins'] = {}
    for nb in (5, 10, 15, 20):
        lc = np.minimum(np.floor(v*nb).astype(int), nb-1); rc = np.maximum(np.ceil(v*nb).astype(int), 1) - 1
        ap = np.floor(v*nb).astype(int)
        e1, m1 = ece_bins(v, r, lc, nb); e2, m2 = ece_bins(v, r, rc, nb)
        o['ece_bins'][str(nb)] = dict(left_closed=e1, mce_left_closed=m1, right_closed=e2, mce_right_closed=m2,
                                      right_edge_own_bin=ece_bins(v, r, ap, nb+1)[0], left_closed_plus_width=e1 + 1/nb)
    if n >= 10: o['ece_median_variance_min5'] = ece_tv(P2, y, median_variance_bins(P2, 5))
    check(f'{name} ece right-closed = TV ECE', abs(ece_tv(P2, y, [np.flatnonzero(np.maximum(np.ceil(v*10).astype(int), 1) == t) for t in np.unique(np.maximum(np.ceil(v*10).astype(int), 1))]) - o['ece_bins']['10']['right_closed']), 1e-15)
    # inequalities of the second paper, and sharpened ones
    k2 = o['kernel']['laplace_nu1']['skce_b']; d = val; t = 1e-9
    ineq = [o['smce'] <= 2*d + t, d <= 2*o['smce'] + t, o['smce'] <= math.sqrt(2*k2) + t, d <= math.sqrt(3.5*k2) + t,
            math.sqrt(k2) <= math.sqrt(1.5*d) + t, math.sqrt(k2) <= d + math.sqrt(d/2) + t, o['intce'] <= inf_ + t,
            inf_ <= 6*math.sqrt(d) + t, o['intce'] <= 4*math.sqrt(d) + t, k2 <= d + t, ece + t >= d]
    if 'dce_upper' in o: ineq += [d <= o['dce_upper'] + t, o['dce_upper'] <= o['intce'] + t]
    if 'dce_true_if_all_x_distinct' in o: ineq += [d <= o['dce_true_if_all_x_distinct'] + t, o['dce_true_if_all_x_distinct'] <= o['dce_upper'] + t]
    assert all(ineq), (name, ineq)
    # streaming (histogram) forms
    o['hist'] = {}
    for nc in (64, 256):
        h = 1/nc; cell = np.minimum(np.floor(v*nc).astype(int), nc-1); ctr = (cell + .5)*h; q = {}
        q['smce_center'] = smce_path(ctr, r/n); q['smce_bound'] = float((np.abs(r)*np.abs(v - ctr)).mean())
        check(f'{name} hist smce', max(0, abs(q['smce_center'] - o['smce']) - q['smce_bound']), 1e-12)
        kk = np.rint(v*nc).astype(int); vr = kk*h; Ug = np.arange(nc+1)/nc
        q['dce_lower_grid'] = dce_lp_U(Ug, np.bincount(kk[y == 0], minlength=nc+1)/n, np.bincount(kk[y == 1], minlength=nc+1)/n)[0]
        q['dce_round_err'] = float(np.abs(v - vr).mean())
        if nc == 64:
            bv, bg = dce_barrier(Ug, np.bincount(kk[y == 0], minlength=nc+1)/n, np.bincount(kk[y == 1], minlength=nc+1)/n)
            check(f'{name} barrier', max(bv - q['dce_lower_grid'], q['dce_lower_grid'] - bv - bg, 0), 1e-9)
        check(f'{name} hist dce', max(0, q['dce_lower_grid'] - val - q['dce_round_err'] - h*h/2, val - q['dce_lower_grid'] - q['dce_round_err']), 1e-8)
        Ra = np.bincount(cell, weights=r, minlength=nc); Aa = np.bincount(cell, weights=np.abs(r), minlength=nc)
        E = np.exp(-np.abs(np.arange(nc)[:, None] - np.arange(nc)[None, :])*h)
        q['kce2_center'] = float(Ra @ E @ Ra/n**2); q['kce2_center_bound'] = float(h*np.abs(r).mean()**2)
        x = v - cell*h; Pa = np.bincount(cell, weights=r*np.exp(x), minlength=nc); Ma = np.bincount(cell, weights=r*np.exp(-x), minlength=nc)
        cross = np.outer(Pa, Ma)*E; q['kce2_moment'] = float((2*np.triu(cross, 1).sum() + (Ra*Ra).sum())/n**2)
        q['kce2_moment_bound'] = float((1 - math.exp(-h))*(Aa*Aa).sum()/n**2)
        check(f'{name} hist kce', max(0, abs(q['kce2_center'] - k2) - q['kce2_center_bound'], abs(q['kce2_moment'] - k2) - q['kce2_moment_bound']), 1e-14)
        RR = []
        for k in range(0, int(math.log2(nc)) + 1):
            mlt = nc >> k; acc = 0.
            for s in range(mlt):            # shift r in (s h,(s+1) h): cell c -> floor((c - s)/mlt) up to relabelling
                b = np.floor((np.arange(nc) - s)/mlt).astype(int); acc += np.abs(np.bincount(b - b.min(), weights=Ra)).sum()/n
            RR.append(acc/mlt)
        q['rintce_aligned'] = RR; q['sintce_aligned'] = min(a + 2.0**-k for k, a in enumerate(RR))
        for k in range(0, min(9, len(RR))): check(f'{name} hist rintce', max(0, abs(RR[k] - R[k]) - 2*(np.abs(r)*np.abs(v - ctr)).mean()*2.0**k), 1e-12)
        Cn = np.r_[0, np.cumsum(np.bincount(cell, minlength=nc))]; Sn = np.r_[0, np.cumsum(Ra)]; F = np.full(nc+1, math.inf); F[0] = 0
        for j in range(nc):
            i = np.arange(j+1); F[j+1] = np.min(F[i] + np.abs(Sn[j+1] - Sn[i])/n + (Cn[j+1] - Cn[i])/n*(j + 1 - i)*h)
        q['intce_aligned'] = float(F[nc]); assert q['intce_aligned'] >= o['intce'] - 1e-12 and q['sintce_aligned'] >= q['intce_aligned'] - 1e-12
        o['hist'][str(nc)] = q
    # consistency resampling replay
    if cr is not None:
        idx, uu = cr; T = []; obs = o['ece_bins']['10']['right_closed']
        for ii, u_ in zip(idx, uu):
            vv = v[ii]; yy = (np.array(u_) < vv).astype(int); rc = np.maximum(np.ceil(vv*10).astype(int), 1) - 1
            T.append(ece_bins(vv, yy - vv, rc, 10)[0])
        o['consistency_resampling_ece10_right_closed'] = dict(T=T, p=float(np.mean(np.array(T) >= obs)), p_plus1=(1 + sum(t >= obs for t in T))/(1 + len(T)))
    # exact null law given predictions, by enumeration
    if tiny:
        K = ker['laplace_nu1']; pr = {q: 0. for q in ('kce2', 'skce_uq', 'smce', 'ece_levels')}
        ob = dict(kce2=k2, skce_uq=o['kernel']['laplace_nu1']['skce_uq'], smce=o['smce'], ece_levels=ece); tp = 0.; mu = 0.; m2 = 0.
        for yy in itertools.product((0, 1), repeat=n):
            yy = np.array(yy); w = float(np.prod(np.where(yy == 1, v, 1-v)))
            if w == 0: continue
            q = yy - v; HH = np.outer(q, q)*K; b = HH.sum()/n**2; st = dict(kce2=b, skce_uq=(HH.sum() - np.trace(HH))/(n*(n-1)), smce=smce_path(v, q/n))
            u_, c_, p_ = levels(v, yy); st['ece_levels'] = float(np.abs(p_ - c_*u_).sum()/n); tp += w; mu += w*b; m2 += w*b*b
            for s in st:
                if st[s] >= ob[s] - 1e-12: pr[s] += w
        o['exact_null_p_given_predictions'] = pr
        check(f'{name} enumeration total', abs(tp - 1), 1e-12); a = o['kernel']['laplace_nu1']
        check(f'{name} null mean/var formulas', max(abs(mu - a['h0_mean_skce_b']), abs(m2 - mu*mu - a['h0_var_skce_b'])), 1e-14)
        assert pr['kce2'] <= a['h0_mcdiarmid_p_kce'] + 1e-12 and pr['smce'] <= o['h0_mcdiarmid_p_smce'] + 1e-12
    return o

def multi_outputs(name, P, y, boot, tests, cr=None):
    n, m = P.shape; Y = np.eye(m)[y]; A = Y - P; o = {}
    TV = 0.5*np.abs(P[:, None, :] - P[None, :, :]).sum(2); E2 = ((P[:, None, :] - P[None, :, :])**2).sum(2)
    med = full_matrix_median(TV); o['bandwidth_median_full_matrix'] = med; o['bandwidth_median_offdiag'] = offdiag_median(TV); G = A @ A.T
    ker = {'tv_exp_median': np.exp(-TV/med), 'tv_exp_nu1': np.exp(-TV), 'sqexp_euclid_half': np.exp(-0.5*E2)}
    o['kernel'] = {}
    for kn, K in ker.items():
        mm, a, b = null_moments_multi(P, K); H = G*K; mm['h0_gamma_p_skce_b'] = gamma_p(H.sum(), a, b)
        mm['h0_mcdiarmid_p_kce'] = math.exp(-n*max(0., math.sqrt(H.sum())/n - math.sqrt(a)/n)**2)
        o['kernel'][kn] = kernel_outputs(H, n, 2.0, boot, mm)
    kf = lambda p, i, q, j: math.exp(-0.5*np.abs(p - q).sum()) if i == j else 0.
    check(f'{name} julia unsafe_skce_eval', max(abs(julia_unsafe_skce_eval(kf, P[i], y[i], P[j], y[j]) - (G*ker['tv_exp_nu1'])[i, j]) for i in range(0, n, 7) for j in range(0, n, 5)), 1e-14)
    o['ece_uniform10_tv'] = ece_tv(P, y, uniform_groups(P, 10)); o['ece_uniform5_tv'] = ece_tv(P, y, uniform_groups(P, 5))
    o['ece_median_variance_min5_tv'] = ece_tv(P, y, median_variance_bins(P, 5)); o['ece_median_variance_min10_tv'] = ece_tv(P, y, median_variance_bins(P, 10))
    # UCME / CME test (later paper, in CalibrationTests.jl): kernel tv_exp_nu1 x white kernel, J test locations
    tp, ty = tests; dev = np.array([[(float(y[i] == t) - P[i, t])*math.exp(-0.5*np.abs(P[i] - q).sum()) for q, t in zip(tp, ty)] for i in range(n)])
    mu = dev.mean(0); S = np.cov(dev.T, ddof=1); st = n*mu @ np.linalg.solve(S, mu)
    o['ucme_tv_exp_nu1'] = dict(estimate=float((mu**2).mean()), mean_deviations=mu, statistic=float(st), p=float(chi2.sf(st, len(ty))))
    # random Fourier features for exp(-TV/nu), nu=1: omega_c iid Cauchy(scale 1/2); two fixed omegas
    o['rff_tv_nu1'] = []
    for w in (np.linspace(-1, 1, m), 0.25*np.arange(m)):
        R = (A*np.exp(-1j*(P @ w))[:, None]).sum(0); o['rff_tv_nu1'].append(dict(omega=w, value=float((np.abs(R)**2).sum()/n**2)))
    conf = P.max(1); top = P.argmax(1); corr = (top == y).astype(int)
    o['top_label'] = dict(conf=conf, correct=corr, mmce_laplace_nu0p4=math.sqrt(max(0, (np.outer(corr-conf, corr-conf)*np.exp(-np.abs(conf[:, None]-conf[None, :])/.4)).sum()))/n,
                          smce=smce_path(conf, (corr-conf)/n), kce_laplace_nu1=math.sqrt(max(0, (np.outer(corr-conf, corr-conf)*np.exp(-np.abs(conf[:, None]-conf[None, :]))).sum()))/n,
                          dce_lower=dce_exact(conf, corr)[0], intce=intce_exact(conf, corr), sintce_eps0p01=sintce(conf, corr, corr-conf)[1],
                          ece15_left_closed=ece_bins(conf, corr-conf, np.minimum(np.floor(conf*15).astype(int), 14), 15)[0])
    o['per_class'] = dict(smce=[smce_path(P[:, c], A[:, c]/n) for c in range(m)],
                          kce2_laplace_nu1=[float((np.outer(A[:, c], A[:, c])*np.exp(-np.abs(P[:, c][:, None]-P[:, c][None, :]))).sum()/n**2) for c in range(m)])
    if cr is not None:
        idx, uu = cr; T = []
        for ii, u_ in zip(idx, uu):
            PP = P[ii]; cs = np.cumsum(PP, 1); yy = np.minimum((np.array(u_)[:, None] >= cs).sum(1), m-1); T.append(ece_tv(PP, yy, uniform_groups(PP, 10)))
        o['consistency_resampling_ece10_tv'] = dict(T=T, p=float(np.mean(np.array(T) >= o['ece_uniform10_tv'])))
    return o

def window_outputs(v, y, W, ts):
    out = []
    for t in ts:
        a, b = v[t-W:t], y[t-W:t]; r = b - a; K = np.exp(-np.abs(a[:, None] - a[None, :])); H = np.outer(r, r)*K
        S = sintce(a, b, r)
        out.append(dict(t_end=t, W=W, kce2=H.sum()/W**2, skce_uq=(H.sum()-np.trace(H))/(W*(W-1)), skce_ul=float(np.mean([H[i, i+1] for i in range(0, W-1, 2)])),
                        smce=smce_path(a, r/W), dce_lower=dce_exact(a, b)[0], intce=intce_exact(a, b), sintce_eps0p01=S[1], h0_mean_kce2=(a*(1-a)).sum()/W**2))
    return out

def main():
    rng = np.random.default_rng(20260); D = {}
    def boots(n, k): return [rng.integers(0, n, n) for _ in range(k)]
    def crs(n, k): return ([rng.integers(0, n, n) for _ in range(k)], [rng.random(n) for _ in range(k)])
    temp = lambda f, b: f**b/(f**b + (1-f)**b)
    sets = []
    sets.append(('bin8_ties01', 'ties, 0/1 predictions, one impossible label (v=0,y=1)', np.array([0, 0, .25, .25, .5, .75, 1, 1]), np.array([0, 1, 0, 1, 1, 0, 1, 1])))
    f = rng.random(8); sets.append(('bin8_distinct', 'distinct full-precision predictions', f, (rng.random(8) < f).astype(int)))
    sets.append(('bin8_constant', 'constant prediction 0.3', np.full(8, .3), np.array([0, 1, 1, 0, 1, 0, 1, 0])))
    f = rng.random(50); sets.append(('bin50_overconfident', 'D_beta, beta=2 (paper 2 sec. 10.1)', temp(f, 2.), (rng.random(50) < f).astype(int)))
    f = np.rint(rng.random(50)*10)/10; sets.append(('bin50_grid01', 'predictions on {0,0.1,..,1}: heavy ties incl. 0 and 1', f, (rng.random(50) < np.clip(f + .1, 0, 1)).astype(int)))
    sets.append(('bin50_smce_exceeds_dce', '49x(0.02,y=0), 1x(0.03,y=1): smCE > dCE_lower', np.r_[np.full(49, .02), .03], np.r_[np.zeros(49, int), 1]))
    f = rng.random(200); sets.append(('bin200_calibrated', 'D_1 (calibrated)', f, (rng.random(200) < f).astype(int)))
    f = rng.random(200); sets.append(('bin200_underconfident', 'D_beta, beta=0.5', temp(f, .5), (rng.random(200) < f).astype(int)))
    for nm, desc, v, y in sets:
        n = len(v); b = boots(n, 4 if n <= 50 else 2); c = crs(n, 3) if n <= 50 else None
        D[nm] = dict(kind='binary', description=desc, n=n, v=v, y=y, boot_idx=b, **(dict(cr_idx=c[0], cr_u=c[1]) if c else {}),
                     out=binary_outputs(nm, v, y, b, c, tiny=(n == 8)))
        if n == 200: D[nm]['window'] = window_outputs(v, y, 64, (64, 100, 164, 200))
        print(nm, 'smce %.6f dce %.6f kce %.6f intce %.6f' % (D[nm]['out']['smce'], D[nm]['out']['dce_lower'], D[nm]['out']['kernel']['laplace_nu1']['kce'], D[nm]['out']['intce']), file=sys.stderr, flush=True)
    assert D['bin50_smce_exceeds_dce']['out']['smce'] > D['bin50_smce_exceeds_dce']['out']['dce_lower']
    for nm, desc, m, a in (('k3_n50', 'Dir(1,1,1), 6 one-hot rows, 6 duplicated rows; labels 0.7 Cat(g)+0.3 class 0', 3, 1.0), ('k10_n50', 'Dir(0.1 x10), M2: labels 0.5 Cat(g)+0.5 class 0', 10, .1)):
        P = rng.dirichlet(np.full(m, a), 50)
        if m == 3: P[:6] = np.eye(3)[[0, 1, 2, 0, 1, 2]]; P[6:12] = P[12:18]
        pi = .3 if m == 3 else .5
        y = np.array([0 if rng.random() < pi else int(rng.choice(m, p=p/p.sum())) for p in P]); b = boots(50, 4); c = crs(50, 3)
        tp = rng.dirichlet(np.ones(m), 3); ty = rng.integers(0, m, 3)
        D[nm] = dict(kind='multiclass', description=desc, n=50, K=m, p=P, y=y, boot_idx=b, cr_idx=c[0], cr_u=c[1], test_p=tp, test_y=ty, out=multi_outputs(nm, P, y, b, (tp, ty), c))
        print(nm, D[nm]['out']['kernel']['tv_exp_median']['skce_uq'], file=sys.stderr, flush=True)
    # constants in the Julia unit tests: kernel exp(-|p-q|_2^2/2) I_2
    I2 = np.eye(2); J = []
    for lab, eb, eu in (((0, 1), 0., 0.), ((0, 0), .5, 0.), ((1, 0), 1 - math.exp(-1), -2*math.exp(-1)), ((1, 1), .5, 0.)):
        A = np.eye(2)[list(lab)] - I2; K = np.exp(-0.5*((I2[:, None]-I2[None])**2).sum(2)); H = (A @ A.T)*K
        check('julia unit test %s' % (lab,), max(abs(H.sum()/4 - eb), abs(H[0, 1] - eu)), 1e-15); J.append(dict(p=I2, y=list(lab), skce_b=eb, skce_uq=eu))
    meta = dict(generator='tests/golden/kernel_distance.py', numpy=np.__version__,
                conventions='binary: v=P(y=1), r=y-v, scalar kernel (bound_B=1); multiclass: labels 0-based, kernel phi*I_m (bound_B=2). Matrix 2-class SKCE = 2 x scalar.',
                tolerance='kernel sums, ECE, RintCE, intCE: 1e-12 relative; smce: 1e-12; dce_lower: 1e-9 absolute; hist LP values 1e-8',
                internal_checks=len(CHECKS), max_check_ratio=max(e/t for _, e, t in CHECKS))
    def enc(x):
        if isinstance(x, dict): return '{' + ','.join(json.dumps(str(k)) + ':' + enc(z) for k, z in x.items()) + '}'
        if isinstance(x, (list, tuple, np.ndarray)): return '[' + ','.join(enc(z) for z in x) + ']'
        if x is None: return 'null'
        if isinstance(x, (bool, np.bool_)): return 'true' if x else 'false'
        if isinstance(x, (int, np.integer)): return str(int(x))
        if isinstance(x, (float, np.floating)): assert math.isfinite(x); return '%.17g' % x
        return json.dumps(x)
    s = '{"meta":' + enc(meta) + ',\n"julia_unit_tests":' + enc(J) + ',\n"datasets":{\n' + ',\n'.join(json.dumps(k) + ':' + enc(z) for k, z in D.items()) + '\n}}\n'
    json.loads(s); open(OUT, 'w').write(s)
    print(len(s), 'bytes,', len(CHECKS), 'checks', file=sys.stderr)

if __name__ == '__main__': main()
