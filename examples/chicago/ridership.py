"""What the three steps share: reading a version of the data set, and a linear model kept as readable JSON."""
import datetime
import json
import os
import sys

import numpy as np
import pandas as pd

DATE = "date"
LABEL = "ridership"
COUNTS = ("_Home", "_Away")  # columns that count games; the others are measurements


class InputError(Exception):
    """Something that the user gave us is wrong; the message says what."""


def day(text):
    """The type of a --from or --to argument."""
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"'{text}' is not a date like 2003-09-30") from None


def parts(path):
    """The files of a data set version, by name: the path is one CSV file or a folder of them."""
    if os.path.isfile(path):
        return [path]
    found = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(path, followlinks=True)
        for name in names
        if name.endswith((".csv", ".csv.gz"))
    )
    if not found:
        raise InputError(f"{path}: no .csv or .csv.gz file there")
    return found


def read_part(path):
    """One file as text, cell by cell, so that what is passed on looks as it came in."""
    try:
        rows = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except (ValueError, OSError, EOFError) as e:
        raise InputError(f"{path}: cannot be read as CSV: {e}") from None
    for column in (DATE, LABEL):
        if column not in rows.columns:
            raise InputError(f"{path}: column '{column}' is missing")
    bad = rows.loc[~rows[DATE].str.fullmatch(r"\d{4}-\d{2}-\d{2}"), DATE]
    if len(bad):
        raise InputError(f"{path}: row {bad.index[0] + 2}: '{bad.iloc[0]}' is not a date like 2003-09-30")
    return rows


def read(path):
    """All rows of a version, by date. Where two files have the same day, the one later by name corrects the other."""
    frames = [read_part(p) for p in parts(path)]
    for p, frame in zip(parts(path), frames):
        if list(frame.columns) != list(frames[0].columns):
            odd = sorted(set(frame.columns) ^ set(frames[0].columns)) or ["their order"]
            raise InputError(f"{p}: its columns differ from the first file's: {', '.join(odd)}")
    rows = pd.concat(frames, ignore_index=True)
    return rows.drop_duplicates(DATE, keep="last").sort_values(DATE, ignore_index=True)


def newest(path):
    """The rows of the file that reaches furthest in time: what the last version of the data set has added."""
    return max((read_part(p) for p in parts(path)), key=lambda r: r[DATE].max() if len(r) else "")


def between(rows, first, last):
    """The rows with first <= date <= last; either end may be None."""
    if first and last and first > last:
        raise InputError(f"--from {first} is after --to {last}")
    keep = pd.Series(True, index=rows.index)
    if first:
        keep &= rows[DATE] >= first
    if last:
        keep &= rows[DATE] <= last
    return rows[keep]


def features(rows):
    return [c for c in rows.columns if c not in (DATE, LABEL)]


def numbers(rows, columns):
    """The columns as float64; an empty or unreadable cell is NaN."""
    return rows[columns].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)


def labels(rows):
    return pd.to_numeric(rows[LABEL], errors="coerce").to_numpy(dtype=float)


class LinearModel:
    """y = intercept + Σ coefficient × (x − mean) / scale. A missing value counts as its mean."""

    def __init__(self, spec):
        self.spec = spec
        self.columns = spec["features"]
        self.mean, self.scale, self.coefficients = (np.array(spec[k], dtype=float) for k in ("mean", "scale", "coefficients"))
        if not len(self.columns) == len(self.mean) == len(self.scale) == len(self.coefficients):
            raise InputError("model.json: features, mean, scale and coefficients differ in length")

    @classmethod
    def load(cls, folder):
        path = os.path.join(folder, "model.json")
        try:
            with open(path, encoding="utf-8") as f:
                return cls(json.load(f))
        except (OSError, KeyError, TypeError, ValueError) as e:
            raise InputError(f"{path}: not a model of this example: {e}") from None

    def predict(self, rows):
        missing = [c for c in self.columns if c not in rows.columns]
        if missing:
            raise InputError(f"the data lack the model's columns {', '.join(missing)}")
        z = (numbers(rows, self.columns) - self.mean) / self.scale
        return self.spec["intercept"] + np.nan_to_num(z, nan=0.0) @ self.coefficients


def mae(y, predicted):
    return float(np.mean(np.abs(y - predicted)))


def environment(name, default=None):
    value = os.environ.get(name) or default
    if not value:
        raise InputError(f"{name} is not set: this script runs as a step of tidemill.yaml")
    return value


def output(name):
    folder = environment("TIDEMILL_OUTPUT")
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def run(main):
    """Runs a step: a user's mistake is one line on stderr and exit code 2, not a traceback."""
    try:
        main()
    except InputError as e:
        print(f"{os.path.basename(sys.argv[0])}: {e}", file=sys.stderr)
        sys.exit(2)
