#!/usr/bin/env python3
"""Trains a standardised ridge regression on the rows of --from … --to and writes it to $TIDEMILL_OUTPUT/model."""
import argparse
import csv
import datetime
import io
import json
import os
import sys

import numpy as np
import sklearn
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import ridership
from ridership import InputError, LinearModel
from tracking import Tracking

FIRST = 180  # rows in the first step of the learning curve
AHEAD = 30   # rows between its steps, and rows that each step is validated on
FEWEST = 60


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--from", dest="first", required=True, help="first day, e.g. 2001-01-01")
    p.add_argument("--to", dest="last", required=True, help="last day, included")
    p.add_argument("--alpha", type=float, default=1.0, help="strength of the ridge penalty")
    args = p.parse_args()
    args.first, args.last = ridership.day(args.first), ridership.day(args.last)
    if not 0 <= args.alpha < float("inf"):
        raise InputError(f"--alpha must be 0 or more, got {args.alpha}")
    return args


def usable(rows, columns):
    """Only complete rows are trained on; how many fell away is said."""
    x, y = ridership.numbers(rows, columns), ridership.labels(rows)
    whole = ~np.isnan(y) & ~np.isnan(x).any(axis=1)
    if not whole.all():
        print(f"dropped {np.isnan(y).sum()} rows without a label, "
              f"{(~whole & ~np.isnan(y)).sum()} with missing features", file=sys.stderr)
    if whole.sum() < FEWEST:
        raise InputError(f"{whole.sum()} complete rows are too few to train on ({FEWEST} at least)")
    return rows[whole], x[whole], y[whole]


def fit(x, y, columns, alpha):
    scaler = StandardScaler().fit(x)
    ridge = Ridge(alpha=alpha).fit(scaler.transform(x), y)
    return LinearModel({
        "kind": "standardised ridge regression", "alpha": alpha, "target": ridership.LABEL, "features": columns,
        "mean": scaler.mean_.tolist(), "scale": scaler.scale_.tolist(), "coefficients": ridge.coef_.tolist(),
        "intercept": float(ridge.intercept_),
    })


def learning_curve(rows, x, y, columns, args, tracking):
    """Trains on a growing window and validates on the rows that follow it: a chart while the training runs."""
    for n in range(FIRST, len(y) - AHEAD + 1, AHEAD):
        model = fit(x[:n], y[:n], columns, args.alpha)
        seen = ridership.mae(y[:n], model.predict(rows.iloc[:n]))
        ahead = ridership.mae(y[n:n + AHEAD], model.predict(rows.iloc[n:n + AHEAD]))
        print(f"{n:5d} days until {rows[ridership.DATE].iloc[n - 1]}: "
              f"MAE {seen:.3f} on them, {ahead:.3f} on the next {AHEAD}", flush=True)
        tracking.metric("train_mae", seen, step=n)
        tracking.metric("valid_mae", ahead, step=n)


def coefficients_csv(model):
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["feature", "coefficient", "mean", "scale"])
    table = zip(model.columns, model.coefficients, model.mean, model.scale)
    for name, c, mean, scale in sorted(table, key=lambda r: -abs(r[1])):
        out.writerow([name, f"{c:.6g}", f"{mean:.6g}", f"{scale:.6g}"])
    return text.getvalue()


def card(model, rows, error, args):
    top = sorted(zip(model.columns, model.coefficients), key=lambda r: -abs(r[1]))[:8]
    lines = "\n".join(f"| {name} | {c:+.3f} |" for name, c in top)
    return (f"# Ridership at Clark/Lake\n\n{model.spec['kind'].capitalize()}, alpha {args.alpha:g}, "
            f"{len(model.columns)} features.\n\n"
            f"Trained on {len(rows)} days from {rows[ridership.DATE].iloc[0]} to {rows[ridership.DATE].iloc[-1]}; "
            f"mean absolute error on them: {error:.3f} thousand entries a day.\n\n"
            f"| strongest features | thousand entries per standard deviation |\n|---|---|\n{lines}\n\n"
            "It knows no calendar: the pattern of the week comes from the other stations two weeks before. It wears out "
            "as the network changes.\n")


def mlmodel(columns):
    inputs = [{"name": c, "type": "long" if c.endswith(ridership.COUNTS) else "double", "required": True} for c in columns]
    outputs = [{"name": "y_pred", "type": "double", "required": True}]
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    return "\n".join([
        "artifact_path: model",
        "flavors:",
        "  linear_json:",
        "    data: model.json",
        "    loader_module: ridership",
        f"    scikit_learn: {json.dumps(sklearn.__version__)}",
        f"run_id: {json.dumps(os.environ.get('MLFLOW_RUN_ID', ''))}",
        "signature:",
        f"  inputs: {quoted(inputs)}",
        f"  outputs: {quoted(outputs)}",
        f"utc_time_created: '{now}'",
        "",
    ])


def quoted(value):
    """JSON as a single-quoted YAML scalar."""
    return "'" + json.dumps(value).replace("'", "''") + "'"


def write(name, text):
    with open(ridership.output(name), "w", encoding="utf-8") as f:
        f.write(text)


def main():
    args = arguments()
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}, scikit-learn {sklearn.__version__}", file=sys.stderr)
    everything = ridership.read(ridership.environment("TIDEMILL_DATASET_HISTORY"))
    columns = ridership.features(everything)
    rows, x, y = usable(ridership.between(everything, args.first, args.last), columns)
    print(f"training on {len(rows)} of {len(everything)} days, {rows[ridership.DATE].iloc[0]} to "
          f"{rows[ridership.DATE].iloc[-1]}, {len(columns)} features, alpha {args.alpha:g}", flush=True)

    tracking = Tracking()
    for key, value in (("alpha", f"{args.alpha:g}"), ("from", args.first), ("to", args.last)):
        tracking.param(key, value)
    tracking.batch(params={"rows": len(rows), "features": len(columns), "estimator": "Ridge"},
                   tags={"scikit_learn": sklearn.__version__})

    learning_curve(rows, x, y, columns, args, tracking)
    model = fit(x, y, columns, args.alpha)
    error = ridership.mae(y, model.predict(rows))
    model.spec.update(trained_from=str(rows[ridership.DATE].iloc[0]), trained_to=str(rows[ridership.DATE].iloc[-1]),
                      rows=len(rows), train_mae=error)

    write("model/model.json", json.dumps(model.spec, indent=1) + "\n")
    write("model/MLmodel", mlmodel(columns))
    tracking.batch(metrics={"final_train_mae": error, "rows": len(rows)}, step=len(rows))
    tracking.artifact("coefficients.csv", coefficients_csv(model).encode(), "text/csv")
    tracking.artifact("model-card.md", card(model, rows, error, args).encode(), "text/markdown")
    tracking.finish()
    print(f"done: MAE {error:.3f} on the training rows")


if __name__ == "__main__":
    ridership.run(main)
