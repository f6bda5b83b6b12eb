#!/usr/bin/env python3
"""Scores challenger and champion on the rows of --from … --to, which neither has seen, for the gate to compare.

Writes $TIDEMILL_OUTPUT/predictions.csv: row_id, model (challenger or champion), y_true, y_pred, weekend.
"""
import argparse
import csv
import datetime
import os
import sys

import numpy as np

import ridership
from ridership import InputError, LinearModel
from tracking import Tracking


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--from", dest="first", required=True, help="first day, e.g. 2003-10-01")
    p.add_argument("--to", dest="last", required=True, help="last day, included")
    args = p.parse_args()
    args.first, args.last = ridership.day(args.first), ridership.day(args.last)
    return args


def models():
    """The two models as (name, model); the champion only when there is one."""
    folder = os.path.join(ridership.environment("TIDEMILL_INPUT_TRAIN"), "model")
    found = [("challenger", LinearModel.load(folder))]
    champion = os.environ.get("TIDEMILL_MODEL_CHAMPION", "")
    if champion and os.path.isdir(champion):
        found.append(("champion", LinearModel.load(champion)))
    else:
        print("there is no champion yet", flush=True)
    return found


def check_unseen(name, model, first):
    last_seen = model.spec.get("trained_to", "")
    if last_seen < first:
        return
    text = f"the {name} has seen rows until {last_seen}, the holdout begins on {first}"
    if name == "challenger":
        raise InputError(text)
    print(f"warning: {text}", file=sys.stderr)


def weekend(date):
    return "yes" if datetime.date.fromisoformat(date).weekday() >= 5 else "no"


def write(rows, scored):
    with open(ridership.output("predictions.csv"), "w", encoding="utf-8", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["row_id", "model", "y_true", "y_pred", "weekend"])
        for name, predicted in scored:
            for date, truth, p in zip(rows[ridership.DATE], rows[ridership.LABEL], predicted):
                out.writerow([date, name, truth, f"{p:.6f}", weekend(date)])


def main():
    args = arguments()
    history = ridership.read(ridership.environment("TIDEMILL_DATASET_HISTORY"))
    rows = ridership.between(history, args.first, args.last)
    rows = rows[~np.isnan(ridership.labels(rows))]
    if not len(rows):
        raise InputError(f"there are no rows with a label from {args.first} to {args.last}")
    candidates = models()
    for name, model in candidates:
        check_unseen(name, model, args.first)
    scored = [(name, model.predict(rows)) for name, model in candidates]
    write(rows, scored)

    tracking = Tracking()
    tracking.batch(params={"holdout_from": args.first, "holdout_to": args.last, "holdout_rows": len(rows)})
    for name, predicted in scored:
        error = ridership.mae(ridership.labels(rows), predicted)
        print(f"{name}: MAE {error:.3f} on {len(rows)} days, {args.first} to {args.last}", flush=True)
        tracking.metric(f"{name}_mae", error)
    tracking.finish()


if __name__ == "__main__":
    ridership.run(main)
