"""The example project's scripts, run as steps: real data, real training, and a fake in the place of the tracking API."""
import collections
import csv
import gzip
import hashlib
import http.server
import importlib.util
import json
import os
import re
import subprocess
import threading
import urllib.parse

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLE = os.path.join(ROOT, "examples", "chicago")
PYTHON = "/usr/bin/python3"  # Debian's, which has scikit-learn
DATA = os.path.join(EXAMPLE, "chicago.csv.gz")
RUN = "0123456789abcdef0123456789abcdef"
DATA_SHA256 = "05bcc2c159f06fe6baf29f423865e1c2397dec472afaa7e6f7b1164a31e862e9"


class FakeTracking:
    """A fake of the few MLflow endpoints that the scripts call; it remembers what it was sent."""

    def __init__(self):
        self.params, self.tags, self.artifacts = {}, {}, {}
        self.metrics = collections.defaultdict(list)
        self.broken = []  # answers to give first: a status, or None for a connection that is cut
        self.refuse = None  # a status to give always
        self.tokens = set()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def answer(self):
                fake.handle(self)

            do_GET = do_POST = do_PUT = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def handle(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        self.tokens.add(request.headers.get("Authorization"))
        status = self.broken.pop(0) if self.broken else self.refuse or 200
        if status is None:
            request.connection.close()
            return
        reply = self.apply(request, body) if status == 200 else {"error_code": "FAKE", "message": "as told"}
        data = json.dumps(reply).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def apply(self, request, body):
        url = urllib.parse.urlsplit(request.path)
        if request.command == "PUT":
            prefix = f"/api/2.0/mlflow-artifacts/artifacts/7/{RUN}/artifacts/"
            assert url.path.startswith(prefix), url.path
            self.artifacts[urllib.parse.unquote(url.path[len(prefix):])] = body
            return {}
        if url.path == "/api/2.0/mlflow/runs/get":
            assert urllib.parse.parse_qs(url.query) == {"run_id": [RUN]}
            return {"run": {"info": {"run_id": RUN, "artifact_uri": f"mlflow-artifacts:/7/{RUN}/artifacts"}}}
        sent = json.loads(body)
        assert request.headers["Content-Type"] == "application/json" and sent["run_id"] == RUN
        kind = url.path.rsplit("/", 1)[1]
        for p in [sent] if kind == "log-parameter" else sent.get("params", []):
            self.params[p["key"]] = p["value"]
        for m in [sent] if kind == "log-metric" else sent.get("metrics", []):
            self.metrics[m["key"]].append((m["step"], m["value"]))
        for t in sent.get("tags", []):
            self.tags[t["key"]] = t["value"]
        return {}


@pytest.fixture
def fake_tracking():
    fake = FakeTracking()
    yield fake
    fake.close()


def step(script, *args, out, history=DATA, fake=None, ok=True, **env):
    """Runs a script as a worker would: a clean environment, and a working directory that it has no business in."""
    env = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "TIDEMILL_OUTPUT": str(out),
           "TIDEMILL_DATASET_HISTORY": str(history), **{k: str(v) for k, v in env.items()}}
    if fake:
        env.update(MLFLOW_TRACKING_URI=fake.uri, MLFLOW_TRACKING_TOKEN="tdm_job_secret", MLFLOW_RUN_ID=RUN)
    done = subprocess.run([PYTHON, script, *args], cwd=EXAMPLE, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return done


def train(out, first="2001-01-01", last="2003-09-30", **more):
    return step("train.py", "--from", first, "--to", last, "--alpha", "1.0", out=out, **more)


def rows_of(path):
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", newline="") as f:
        return list(csv.DictReader(f))


def write_rows(path, rows):
    with (gzip.open if str(path).endswith(".gz") else open)(path, "wt", newline="") as f:
        out = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def mae(rows, truth="y_true"):
    return sum(abs(float(r[truth]) - float(r["y_pred"])) for r in rows) / len(rows)


@pytest.fixture(scope="module")
def champion(tmp_path_factory):
    """The model of 2001–2003, trained once."""
    out = tmp_path_factory.mktemp("champion")
    train(out)
    return out


def test_the_data_are_what_the_readme_says():
    with gzip.open(DATA) as f:
        assert hashlib.sha256(f.read()).hexdigest() == DATA_SHA256
    with open(os.path.join(EXAMPLE, "README.md"), encoding="utf-8") as f:
        assert DATA_SHA256 in f.read()
    rows = rows_of(DATA)
    assert len(rows) == 5698 and len(rows[0]) == 50
    assert [r["date"] for r in (rows[0], rows[-1])] == ["2001-01-22", "2016-08-28"]


def test_the_files_name_scripts_that_exist():
    for name in ("tidemill.yaml", "score.yaml"):
        with open(os.path.join(EXAMPLE, name), encoding="utf-8") as f:
            scripts = re.findall(r'run: \["python3", "([^"]+)"', f.read())
        assert scripts and all(os.path.isfile(os.path.join(EXAMPLE, s)) for s in scripts)


def test_train_writes_a_model_and_tracks_it(tmp_path, fake_tracking):
    done = train(tmp_path, fake=fake_tracking)
    assert "training on 982 of 5698 days" in done.stdout
    assert re.fullmatch(r"python \S+, numpy \S+, scikit-learn \S+\n", done.stderr)
    model = json.loads((tmp_path / "model" / "model.json").read_text())
    assert len(model["features"]) == len(model["coefficients"]) == 48 and "ridership" not in model["features"]
    assert (model["trained_from"], model["trained_to"], model["rows"]) == ("2001-01-22", "2003-09-30", 982)
    mlmodel = (tmp_path / "model" / "MLmodel").read_text()
    assert RUN in mlmodel
    inputs = json.loads(re.search(r"^  inputs: '(.*)'$", mlmodel, re.M).group(1))
    assert [i["name"] for i in inputs] == model["features"]

    assert fake_tracking.tokens == {"Bearer tdm_job_secret"}
    assert fake_tracking.params == {"alpha": "1", "from": "2001-01-01", "to": "2003-09-30", "rows": "982",
                                    "features": "48", "estimator": "Ridge"}
    steps = list(range(180, 982 - 30 + 1, 30))
    for key in ("train_mae", "valid_mae"):
        assert [s for s, _ in fake_tracking.metrics[key]] == steps
    assert fake_tracking.metrics["final_train_mae"] == [(982, model["train_mae"])]
    assert set(fake_tracking.artifacts) == {"coefficients.csv", "model-card.md"}
    assert fake_tracking.artifacts["coefficients.csv"].count(b"\n") == 49


def test_evaluate_without_a_champion(tmp_path, champion, fake_tracking):
    step("evaluate.py", "--from", "2003-10-01", "--to", "2003-12-31", out=tmp_path, fake=fake_tracking,
         TIDEMILL_INPUT_TRAIN=champion, TIDEMILL_MODEL_CHAMPION=tmp_path / "absent")
    rows = rows_of(tmp_path / "predictions.csv")
    assert list(rows[0]) == ["row_id", "model", "y_true", "y_pred", "weekend"]
    assert len(rows) == 92 and {r["model"] for r in rows} == {"challenger"}
    assert mae(rows) == pytest.approx(1.732, abs=0.01)
    assert {r["row_id"]: r["weekend"] for r in rows}["2003-10-04"] == "yes"  # a Saturday
    assert sum(r["weekend"] == "yes" for r in rows) == 26
    assert fake_tracking.metrics["challenger_mae"][0][1] == pytest.approx(mae(rows), abs=1e-5)


def test_a_challenger_beats_the_worn_champion(tmp_path, champion):
    train(tmp_path, "2005-01-01", "2007-12-31")
    step("evaluate.py", "--from", "2008-01-01", "--to", "2008-03-31", out=tmp_path,
         TIDEMILL_INPUT_TRAIN=tmp_path, TIDEMILL_MODEL_CHAMPION=champion / "model")
    by = collections.defaultdict(list)
    for r in rows_of(tmp_path / "predictions.csv"):
        by[r["model"]].append(r)
    assert [r["row_id"] for r in by["challenger"]] == [r["row_id"] for r in by["champion"]]
    assert mae(by["champion"]) == pytest.approx(2.900, abs=0.02)
    assert mae(by["challenger"]) == pytest.approx(2.194, abs=0.02)


def test_the_holdout_must_be_unseen(tmp_path, champion):
    done = step("evaluate.py", "--from", "2003-09-01", "--to", "2003-12-31", out=tmp_path, ok=False,
                TIDEMILL_INPUT_TRAIN=champion)
    assert done.returncode == 2 and "the challenger has seen rows until 2003-09-30" in done.stderr
    assert not (tmp_path / "predictions.csv").exists()


def test_score_takes_the_rows_of_the_newest_file(tmp_path, champion):
    rows = rows_of(DATA)
    version = tmp_path / "version"
    version.mkdir()
    # By name the newest file stands in the middle: what counts is how far it reaches.
    write_rows(version / "a.csv.gz", [r for r in rows if r["date"] < "2003-01-01"])
    write_rows(version / "b.csv", [r for r in rows if "2004-01-01" <= r["date"] < "2004-04-01"])
    write_rows(version / "c.csv.gz", [r for r in rows if "2003-01-01" <= r["date"] < "2004-01-01"])
    done = step("score.py", out=tmp_path, history=version, TIDEMILL_MODEL_CHAMPION=champion / "model")
    assert "scored 91 days, 2004-01-01 to 2004-03-31" in done.stdout
    got = rows_of(tmp_path / "observations.csv")
    assert list(got[0])[:4] == ["row_id", "date", "y_pred", "ridership"] and len(got[0]) == 52
    assert mae(got, "ridership") == pytest.approx(1.668, abs=0.01)
    source = {r["date"]: r for r in rows}
    for r in got:  # what is passed on looks as it came in
        assert all(r[c] == v for c, v in source[r["date"]].items())


def test_score_without_a_champion_scores_nothing(tmp_path):
    done = step("score.py", out=tmp_path, TIDEMILL_MODEL_CHAMPION=tmp_path / "absent")
    assert "there is no champion yet" in done.stdout
    assert rows_of(tmp_path / "observations.csv") == []


def test_the_error_outgrows_the_gate_at_the_end_of_2007(tmp_path, champion):
    """What the monitor's policy rests on: the first hot quarter is the last of 2007, and the next one is hot as well."""
    step("score.py", "--from", "2004-01-01", "--to", "2008-03-31", out=tmp_path,
         TIDEMILL_MODEL_CHAMPION=champion / "model")
    quarters = collections.defaultdict(list)
    for r in rows_of(tmp_path / "observations.csv"):
        quarters[f"{r['date'][:4]}q{(int(r['date'][5:7]) + 2) // 3}"].append(r)
    step("evaluate.py", "--from", "2003-10-01", "--to", "2003-12-31", out=tmp_path, TIDEMILL_INPUT_TRAIN=champion)
    gate = mae(rows_of(tmp_path / "predictions.csv"))
    assert [q for q, rows in quarters.items() if mae(rows, "ridership") > 1.5 * gate] == ["2007q4", "2008q1"]


def test_later_files_correct_earlier_ones_and_unlabelled_rows_are_left_out(tmp_path):
    rows = [r for r in rows_of(DATA) if r["date"] < "2002-01-01"]
    version = tmp_path / "version"
    version.mkdir()
    write_rows(version / "a.csv", rows[100:] + rows[:100])
    write_rows(version / "b.csv", [dict(r, ridership="") for r in rows[:5]] + [dict(rows[5], Austin="")])
    done = train(tmp_path, history=version)
    assert "dropped 5 rows without a label, 1 with missing features" in done.stderr
    assert json.loads((tmp_path / "model" / "model.json").read_text())["rows"] == len(rows) - 6


def test_tracking_survives_a_server_that_comes_and_goes(tmp_path, fake_tracking):
    fake_tracking.broken = [503, None, 500, 429] + [200] * 10 + [None, 502]
    done = train(tmp_path, fake=fake_tracking)
    assert "tracking" not in done.stderr and len(fake_tracking.metrics["valid_mae"]) == 26
    assert fake_tracking.params["alpha"] == "1" and len(fake_tracking.artifacts) == 2


def test_tracking_that_is_refused_does_not_fail_the_training(tmp_path, fake_tracking):
    fake_tracking.refuse = 403
    done = train(tmp_path, fake=fake_tracking)
    assert "tracking: param alpha: 403" in done.stderr and "points are lost" in done.stderr
    assert (tmp_path / "model" / "model.json").is_file()


def test_late_points_are_sent_at_the_end(fake_tracking, capsys):
    spec = importlib.util.spec_from_file_location("example_tracking", os.path.join(EXAMPLE, "tracking.py"))
    tracking = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tracking)
    t = tracking.Tracking({"MLFLOW_TRACKING_URI": fake_tracking.uri + "/", "MLFLOW_RUN_ID": RUN}, retry_for=0.05)
    fake_tracking.broken = [503] * 3
    for i, value in enumerate((0.5, float("nan"), float("-inf"))):
        t.metric("loss", value, step=i)
    assert fake_tracking.metrics == {} and "given up" in capsys.readouterr().err
    t.finish()
    assert fake_tracking.metrics["loss"] == [(0, 0.5), (1, "NaN"), (2, "-Infinity")]


@pytest.mark.parametrize("args, message", [
    (["--from", "2003-13-01", "--to", "2003-09-30"], "'2003-13-01' is not a date"),
    (["--from", "2003-01-01", "--to", "2002-01-01"], "--from 2003-01-01 is after --to 2002-01-01"),
    (["--from", "2003-01-01", "--to", "2003-01-31"], "31 complete rows are too few"),
    (["--from", "2001-01-01", "--to", "2003-09-30", "--alpha", "-1"], "--alpha must be 0 or more"),
    (["--from", "2001-01-01", "--to", "2003-09-30", "--alpha", "much"], "--alpha"),
])
def test_a_mistake_gets_one_clear_line(tmp_path, args, message):
    done = step("train.py", *args, out=tmp_path, ok=False)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("text, message", [
    ("date,ridership,x\n2001-01-01,1,2,3,4\n2001-01-02,1,2\n2001-01-03,1,2,3,4,5,6\n", "cannot be read as CSV"),
    ("day,ridership\n2001-01-01,1\n", "column 'date' is missing"),
    ("date,ridership\n01/02/2001,1\n", "row 2: '01/02/2001' is not a date"),
])
def test_bad_data_are_named(tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    done = train(tmp_path, history=tmp_path / "bad.csv", ok=False)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
