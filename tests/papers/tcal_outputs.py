"""Writes the model outputs of T-Cal's repository as NETWORK.METHOD.csv (score, label), as `trueline reproduce tcal
--data` reads them: the CIFAR networks of Tables 1, 2, 4 and 5 and the ImageNet networks of Tables 3 and 6.

    git clone https://github.com/dh7401/T-Cal
    pip install numpy scikit-learn parameterized
    pip install --no-deps uncertainty-calibration
    python tcal_outputs.py T-Cal/experiments/data published/tcal
    trueline reproduce tcal --data published

The settings are those of the paper: 2000 events calibrate (10,000 on ImageNet), the others are kept; Platt,
histogram and scaling-binning are those of the package `uncertainty-calibration` with 15 bins; the polynomial has
degree 3 (5 on CIFAR-100 and ImageNet). Unpickle only files that you trust.
"""
import pathlib, pickle, sys
import numpy as np
from calibration import HistogramCalibrator, PlattBinnerCalibrator, PlattCalibrator
from sklearn.isotonic import IsotonicRegression

BINS = 15

def package(kind, z, y):
    c = kind(len(z), num_bins=BINS)
    c.train_calibration(z, y)
    return c.calibrate

def polynomial(degree, z, y):
    fit = np.polynomial.Polynomial.fit(z, y, degree)
    return lambda x: np.clip(fit(x), 0, 1)

def isotonic(z, y):
    return IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(z, y).predict

def main(pickles, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(pickles.glob("*.pickle")):
        with open(path, "rb") as f:
            z, y = pickle.load(f)
        data = path.stem.split("_")[0]
        first = 10_000 if data == "imagenet" else 2000
        a, b, rest, label = z[:first], y[:first], z[first:], y[first:]
        methods = {
            "platt": lambda: package(PlattCalibrator, a, b),
            "poly": lambda: polynomial(3 if data == "cifar10" else 5, a, b),
            "isotonic": lambda: isotonic(a, b),
            "histogram": lambda: package(HistogramCalibrator, a, b),
            "scalebin": lambda: package(PlattBinnerCalibrator, a, b),
        }
        outputs = {"none": (z, y)} | {name: (make()(rest), label) for name, make in methods.items()}
        for name, (scores, labels) in outputs.items():
            lines = (f"{float(s)!r},{int(l)}\n" for s, l in zip(scores, labels))
            (folder / f"{path.stem}.{name}.csv").write_text("score,label\n" + "".join(lines))

if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:3]))
