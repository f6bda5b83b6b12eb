"""usage: drift_scipy.py RATE: scipy's ks_2samp beside our rate (M values/s), as a JSON line.

One column of 1,000,000 rows against 1,000,000, CPU time; scipy of Debian's python3-scipy.
"""
import json
import sys
import time

import numpy
import scipy.stats

ROWS, GOAL = 1_000_000, 80
rng = numpy.random.default_rng(1)
reference, window = rng.normal(size=ROWS), rng.normal(size=ROWS) * 1.1
start = time.process_time()
scipy.stats.ks_2samp(reference, window, method="asymp")
rate = ROWS / 1e6 / (time.process_time() - start)
times = float(sys.argv[1]) / rate
print(json.dumps({"name": "drift.times_scipy_ks", "value": round(times, 1), "unit": "x", "floor": round(rate, 3),
                  "ratio": round(times, 1), "goal": GOAL, "ok": times >= GOAL}))
