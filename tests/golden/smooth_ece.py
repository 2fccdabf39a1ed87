"""Golden values of smECE from the published package relplot (Blasiok and Nakkiran), for smooth_ece.rs.

Made with relplot 1.0.3, numpy 2.4.6, scipy 1.17.1:  pip install relplot==1.0.3;  python smooth_ece.py > smooth_ece.json
Scores are whole numbers over 65536, so they are the same doubles here and there.
"""

import json

import numpy as np
import relplot
from importlib.metadata import version

relplot.config.use_logit_scaling = False
SIGMAS = [0.02, 0.05, 0.1, 0.3]


def case(name, n, seed, scores, truth):
    rng = np.random.default_rng(seed)
    z = np.round(scores(rng, n) * 65536).astype(int).clip(0, 65536)
    f = z / 65536
    y = (rng.uniform(size=n) < truth(f)).astype(int)
    value, width = relplot.smECE(f, y.astype(float), return_width=True)
    return {
        "name": name,
        "z": z.tolist(),
        "y": y.tolist(),
        "smece": float(value),
        "width": float(width),
        "at": [[s, float(relplot.metrics.smECE_sigma(f, y.astype(float), s))] for s in SIGMAS],
    }


def uniform(rng, n):
    return rng.uniform(size=n)


CASES = [
    case("calibrated", 400, 1, uniform, lambda f: f),
    case("over-confident", 400, 2, uniform, lambda f: 0.5 + 0.5 * (f - 0.5)),
    case("under-confident", 400, 3, uniform, lambda f: np.clip(0.5 + 1.6 * (f - 0.5), 0, 1)),
    case("too high", 300, 4, uniform, lambda f: 0.6 * f),
    case("rare events, doubled", 500, 5, lambda rng, n: rng.beta(0.5, 20, size=n), lambda f: np.clip(2 * f, 0, 1)),
    case("few values", 300, 6, lambda rng, n: rng.integers(0, 5, size=n) / 4, lambda f: 0.2 + 0.6 * f),
]

print(json.dumps({"relplot": version("relplot"), "numpy": np.__version__, "cases": CASES}, separators=(",", ":")))
