#!/usr/bin/env python3
"""Production: the champion scores the rows that the newest version of the data set has added.

Each version adds one file, so the new rows are those of the file that reaches furthest in time; --from and --to choose
others. Writes $TIDEMILL_OUTPUT/observations.csv: row_id, date, y_pred, the label when it is known, all features.
"""
import argparse
import os

import numpy as np

import ridership
from ridership import InputError, LinearModel


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--from", dest="first", help="first day (default: those of the newest file)")
    p.add_argument("--to", dest="last", help="last day, included")
    args = p.parse_args()
    args.first = ridership.day(args.first) if args.first else None
    args.last = ridership.day(args.last) if args.last else None
    return args


def new_rows(args):
    path = ridership.environment("TIDEMILL_DATASET_HISTORY")
    if not args.first and not args.last:
        return ridership.newest(path).drop_duplicates(ridership.DATE, keep="last").sort_values(ridership.DATE)
    return ridership.between(ridership.read(path), args.first, args.last)


def main():
    args = arguments()
    rows = new_rows(args)
    if not len(rows):
        raise InputError("there are no rows to score")
    columns = ridership.features(rows)
    champion = os.environ.get("TIDEMILL_MODEL_CHAMPION", "")
    if champion and os.path.isdir(champion):
        predicted = LinearModel.load(champion).predict(rows)
    else:
        print("there is no champion yet: nothing is scored", flush=True)
        rows, predicted = rows.iloc[:0], np.empty(0)
    out = rows[[ridership.DATE, ridership.LABEL] + columns].copy()
    out.insert(0, "row_id", out[ridership.DATE])
    out.insert(2, "y_pred", [f"{p:.6f}" for p in predicted])
    out.to_csv(ridership.output("observations.csv"), index=False, lineterminator="\n")
    if len(rows):
        print(f"scored {len(rows)} days, {rows[ridership.DATE].iloc[0]} to {rows[ridership.DATE].iloc[-1]}")
        y = ridership.labels(rows)
        known = ~np.isnan(y)
        if known.any():
            print(f"MAE {ridership.mae(y[known], predicted[known]):.3f} on the {known.sum()} days whose label is known")


if __name__ == "__main__":
    ridership.run(main)
