"""Golden values of recalibration.rs: maps by scikit-learn.

    pip install scikit-learn==1.9.1 && python recalibration.py DATA > recalibration.json

DATA holds NETWORK.none.csv, each with columns score and label (10,000 rows); seeded samples are those of
tcal_ci.py. Maps are fitted to the first 2000 rows and judged on the rest. Scores enter logarithms clipped at 2^-32, as trueline has them.
"""

import csv
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from tcal_ci import seeded
import sklearn
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

warnings.filterwarnings("ignore")
CLIP = 2.0**-32
RESAMPLES = 200
SEEDED = ["confidences_too_high", "uniform_bent"]


def logs(z):
    z = np.clip(z, CLIP, 1 - CLIP)
    return np.log(z), np.log1p(-z)


def logit(z):
    a, b = logs(z)
    return a - b


def ece_l1(z, y, cells=15):
    at = np.minimum((z * cells).astype(int), cells - 1)
    return float(sum(abs(np.sum(y[at == c] - z[at == c])) for c in range(cells)) / len(z))


def judged(z, y):
    return {"ece_l1": ece_l1(z, y), "log_loss": float(log_loss(y, np.clip(z, CLIP, 1 - CLIP))), "brier": float(np.mean((z - y) ** 2))}


def maximum(x, y):
    """Maximum likelihood: no penalty, Newton to the end."""
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(x, y)
    return model, [float(model.intercept_[0]), *map(float, model.coef_[0])]


def sampling_error(fit, z, y, on):
    """Root mean square over `on` of the bootstrap standard deviation of a fitted map."""
    rng = np.random.default_rng(1)
    picks = [rng.integers(0, len(z), len(z)) for _ in range(RESAMPLES)]
    maps = np.array([fit(z[i], y[i])(on) for i in picks])
    return float(np.sqrt(np.mean(np.var(maps, axis=0, ddof=1))))


def plain_map(z, y):
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(logit(z)[:, None], y)
    return lambda on: model.predict_proba(logit(on)[:, None])[:, 1]


def platt_map(z, y):
    """CalibratedClassifierCV(method="sigmoid") on the log-odds, with Platt's smoothed targets."""
    model = _SigmoidCalibration().fit(logit(z), y)
    return lambda on: model.predict(logit(on))


def isotonic_map(z, y):
    return IsotonicRegression(out_of_bounds="clip").fit(z, y).predict


def network(path):
    rows = list(csv.DictReader(path.open()))
    return maps(np.array([float(r["score"]) for r in rows]), np.array([int(r["label"]) for r in rows]))


def maps(z, y):
    (fz, fy), (tz, ty) = (z[:2000], y[:2000]), (z[2000:], y[2000:])

    plain, parameters = maximum(logit(fz)[:, None], fy)
    logistic = {
        "intercept": parameters[0],
        "slope": parameters[1],
        "judged": judged(plain.predict_proba(logit(tz)[:, None])[:, 1], ty),
        "sampling_error": sampling_error(plain_map, fz, fy, tz),
    }
    platt = _SigmoidCalibration().fit(logit(fz), fy)
    both = lambda z: np.column_stack([logs(z)[0], -logs(z)[1]])
    _, (c, a, b) = maximum(both(fz), fy)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(fz, fy)
    return {
        "logistic": logistic,
        # 1/(1 + exp(A x + B)): slope -A, intercept -B.
        "platt": {
            "intercept": float(-platt.b_),
            "slope": float(-platt.a_),
            "judged": judged(platt_map(fz, fy)(tz), ty),
            "sampling_error": sampling_error(platt_map, fz, fy, tz),
        },
        "beta_unbounded": {"a": a, "b": b, "c": c},
        "isotonic": {
            "scores": [float(x) for x in isotonic.X_thresholds_],
            "rates": [float(q) for q in isotonic.y_thresholds_],
            "judged": judged(isotonic.predict(tz), ty),
            "sampling_error": sampling_error(isotonic_map, fz, fy, tz),
        },
        "original": judged(tz, ty),
    }


def main():
    files = sorted(Path(sys.argv[1]).glob("*.none.csv"))
    out = {
        "made_by": f"tests/golden/recalibration.py, scikit-learn {sklearn.__version__}, numpy {np.__version__}",
        "networks": {f.name.removesuffix(".none.csv"): network(f) for f in files},
        "seeded": {name: maps(*seeded(name)) for name in SEEDED},
    }
    json.dump(out, sys.stdout, indent=1)
    print()


main()
