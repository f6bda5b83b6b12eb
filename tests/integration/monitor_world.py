"""The Chicago example without a worker: a model version put into the store by hand, rows scored by a ridge regression."""
import datetime
import gzip
import hashlib
import json
import subprocess
from pathlib import Path

from harness import until

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/chicago"
PYTHON = "/usr/bin/python3"  # Debian's, which has scikit-learn

# Trains on the given days with the example's own code and scores the others; prints CSV.
SCORE = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import ridership, train
rows = ridership.read(sys.argv[2])
columns = ridership.features(rows)
trained, x, y = train.usable(ridership.between(rows, sys.argv[3], sys.argv[4]), columns)
model = train.fit(x, y, columns, 1.0)
new = ridership.between(rows, sys.argv[5], sys.argv[6])
out = new[[ridership.DATE, ridership.LABEL] + columns].copy()
out.insert(0, "row_id", out[ridership.DATE])
out.insert(2, "y_pred", ["%.6f" % p for p in model.predict(new)])
out.to_csv(sys.stdout, index=False, lineterminator="\\n")
"""


def scored(trained_from, trained_to, first, last):
    """(header, rows) of the days first … last as observations, scored by a model of the days trained_from … trained_to."""
    done = subprocess.run([PYTHON, "-c", SCORE, str(EXAMPLE), str(EXAMPLE / "chicago.csv.gz"), trained_from, trained_to,
                           first, last], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return lines[0], lines[1:]


def error(rows):
    """The mean absolute error of such rows: the third cell is the label, the fourth … by the header of scored()."""
    cells = [r.split(",") for r in rows]
    return sum(abs(float(c[2]) - float(c[3])) for c in cells) / len(cells)


def quarter(rows, year, q):
    months = {f"{year}-{m:02d}" for m in range(3 * q - 2, 3 * q + 1)}
    return [r for r in rows if r[:7] in months]


def csv(header, rows):
    return ("\n".join([header, *rows]) + "\n").encode()


def dataset(api, project, name, files):
    """A data set with one version; returns the version's id."""
    base = f"/api/v1/projects/{project}"
    entries = []
    for path, data in files.items():
        digest = hashlib.sha256(data).hexdigest()
        api.put(f"{base}/blobs/{digest}", data, expect=201)
        entries.append({"path": path, "digest": digest, "size": len(data)})
    api.post(f"{base}/datasets", {"name": name}, expect=201)
    return api.post(f"{base}/datasets/{name}/versions", {"files": entries}, expect=201).json()["id"]


def model(server, project, name, version_id, number=1, alias="champion", **more):
    """A model version as the end of a run leaves it, by SQL; returns its id."""
    training = {"dataset": "d", "dataset_version": 1, "dataset_version_id": version_id, "column": "date", **more}
    level = training.pop("level", "NULL")
    metric = training.pop("metric", "mae")
    mdl, mv = f"mdl_{name}", f"mv_{name}_{number}"
    server.sql(f"""
        INSERT INTO model (id, project_id, name) SELECT '{mdl}', id, '{name}' FROM project WHERE name = '{project}' ON CONFLICT DO NOTHING;
        UPDATE model SET versions = {number} WHERE id = '{mdl}';
        INSERT INTO model_version (id, model_id, number, training_data, metric, level)
        VALUES ('{mv}', '{mdl}', {number}, '{json.dumps(training)}', '{metric}', {level});""")
    if alias:
        server.sql(f"SELECT alias_move('{mdl}', '{alias}', '{mv}', NULL, 'api', '', NULL)")
    return mv


def chicago():
    return (EXAMPLE / "chicago.csv.gz").read_bytes()


def chicago_plain():
    return gzip.decompress(chicago())


def end_steps(server, api, project, run_id, outputs, wait=True):
    """Plays the worker by SQL: all steps have succeeded, with these outputs {"step.output": {path: bytes}}; then waits for
    the run's end and returns it."""
    for where, files in outputs.items():
        step, output = where.split(".")
        for path, data in files.items():
            digest = hashlib.sha256(data).hexdigest()
            api.put(f"/api/v1/projects/{project}/blobs/{digest}", data, expect=201)
            server.sql(f"""INSERT INTO step_output (step_id, name, path, size, digest)
                SELECT id, '{output}', '{path}', {len(data)}, '\\x{digest}' FROM step WHERE run_id = '{run_id}' AND name = '{step}'""")
    server.sql(f"""DELETE FROM queue WHERE run_id = '{run_id}';
        UPDATE step SET state = 'succeeded', ended_at = now() WHERE run_id = '{run_id}';
        UPDATE run SET state = 'finishing', version = version + 1 WHERE id = '{run_id}';""")
    return ended(server, api, run_id) if wait else None


def ended(server, api, run_id):
    """The run, when it has ended."""
    def look():
        run = api.get(f"/api/v1/runs/{run_id}", expect=200).json()
        return run if run["state"] in ("succeeded", "failed", "cancelled") else None

    return until(look, 60, message=lambda: server.log()[-4000:])


def predictions(**models):
    """The evaluate step's file: the same rows scored by each model."""
    out = ["row_id,model,y_true,y_pred,weekend"]
    for name, scored_rows in models.items():
        for row in scored_rows:
            cells = row.split(",")
            weekday = datetime.date.fromisoformat(cells[0]).weekday()
            out.append(f"{cells[0]},{name},{cells[3]},{cells[2]},{'yes' if weekday >= 5 else 'no'}")
    return ("\n".join(out) + "\n").encode()
