"""The whole path through a network that duplicates, loses and cuts: what it comes to is the same as without.

A project does one of everything: a data set is pushed and a pipeline applied and submitted by the command line, a worker
runs it (log, params, metrics, artifacts, outputs), its model passes a gate and is promoted, a monitor takes observations
and late labels, its windows are closed. Once without faults; once through a proxy that sends every mutating call two times;
once through one that delays calls, drops replies after the work is done, and cuts requests and replies in the middle. What
the projects hold then is compared, with all ids and times left out.

Left alone are the two calls that nobody can repeat: `workers/enroll`, whose token is used up by the first one, and MLflow's
`runs/create`, which has no key: a client whose reply is lost makes a second run there, with MLflow's own server, too."""
import hashlib
import http.client
import json
import os
import random
import subprocess

import pytest

from harness import ROOT, SANITIZERS, Client, Postgres, Server, program, until
from proxy import AT_ONCE, CUT_REPLY, CUT_REQUEST, DELAY, DROP, MUTATING, FaultProxy, twice
from stack import Worker, attempts_of, join_token, raw_log, steps_of

LINES = 400
TRAIN = f"""
import json, os, sys
sys.path.insert(0, {str(ROOT / 'examples/chicago')!r})
from tracking import Tracking
t = Tracking()
t.param("alpha", 0.5)
for i in range({LINES}):
    print("line", i, "of a training", flush=i % 50 == 0)
    if i % 40 == 0:
        t.metric("loss", 1 / (i + 1), i)
        t.batch(metrics={{"acc": i / {LINES}, "lr": 0.1}}, params={{"p%d" % i: i}}, tags={{"at": str(i)}}, step=i)
for name, size in (("small.txt", 3), ("large.bin", 3000000)):
    t.artifact(name, bytes(i % 251 for i in range(1000)) * (size // 1000) + b"abc")
t.finish()
os.makedirs(os.environ["TIDEMILL_OUTPUT"] + "/model/deep")
json.dump({{"a": 1}}, open(os.environ["TIDEMILL_OUTPUT"] + "/model/model.json", "w"))
open(os.environ["TIDEMILL_OUTPUT"] + "/model/deep/weights", "wb").write(bytes(range(256)) * 8000)
"""
EVALUATE = """
import os
assert os.path.exists(os.environ["TIDEMILL_INPUT_TRAIN"] + "/model/deep/weights")
with open(os.environ["TIDEMILL_OUTPUT"] + "/p.csv", "w") as f:
    f.write("row_id,model,y_true,y_pred\\n" + "".join("r%d,challenger,%d,%g\\n" % (i, i, i + i % 3) for i in range(100)))
print("evaluated")
"""
PIPELINE = """
apiVersion: tidemill/v1
kind: Pipeline
metadata: {name: p}
spec:
  datasets: {history: {name: d, version: latest}}
  defaults: {runtimes: [process]}
  steps:
    train:
      run: %s
      resources: {cpus: 1, memory: 64MiB}
      placement: {pool: %s}
      outputs: {model: {path: model, kind: model}}
    evaluate:
      needs: [train]
      run: %s
      resources: {cpus: 1, memory: 64MiB}
      placement: {pool: %s}
      outputs: {predictions: {path: p.csv, kind: predictions}}
  model:
    name: %s
    from: train.model
    training_data: {dataset: history, column: date, from: 2020-01-01, to: 2020-04-29}
    gate: {predictions: evaluate.predictions, metric: mae, require: [{metric: mae, max: 5.0}], promote: champion}
"""
MONITOR = """
apiVersion: tidemill/v1
kind: Monitor
metadata: {name: m}
spec:
  subject: {model: %s, alias: champion}
  columns: {id: row_id, time: date, prediction: y_pred, label: y}
  window: {size: 1d}
  late: 30d
  min_samples: 10
  performance: {metric: mae}
  policy: {performance: {action: warn}, drift: {action: warn}}
"""
DATA = "date,temp,y\n" + "".join(f"2020-{1 + i // 29 % 12:02d}-{1 + i % 29:02d},{i % 17}.5,{i % 5}\n" for i in range(116))


def rows(day):
    return b"date,row_id,temp,y_pred\n" + b"".join(b"2020-05-%02dT%02d:00:00Z,r%d-%d,%d.5,%d\n" % (day, i % 24, day, i, i % 17, i % 5)
                                                   for i in range(500))


class Caller:
    """A client that repeats what it has no answer to, under the same key, as all of ours do."""

    def __init__(self, port, token):
        self.api, self.n = Client("127.0.0.1", port, token), 0

    def call(self, method, path, body=None, expect=200, key=True, **headers):
        self.n += 1
        if key:
            headers["Idempotency-Key"] = f"call-{self.n}"

        def answered():
            try:
                reply = self.api.request(method, path, body, headers=headers)
            except (OSError, http.client.HTTPException):
                self.api.close()
                return None
            # Of two calls at once the second one is told to wait for the first.
            assert reply.status in (expect, 503) or reply.status == 409 and reply.json()["code"] == "in_progress", reply
            return reply if reply.status == expect else None

        return until(answered, 60, 0.05, f"{method} {path} does not get through")


def command_line(home, port, token, project, *args):
    env = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(home), **SANITIZERS, "TIDEMILL_TOKEN": token,
           "TIDEMILL_SERVER": f"http://127.0.0.1:{port}", "TIDEMILL_PROJECT": project}
    done = subprocess.run([str(program("tidemill")), *map(str, args)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=90)
    assert done.returncode == 0, (args, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def story(server, project, port, home):
    """Everything, through this port."""
    model = f"model-{project}"
    token = server.token
    (home / "data.csv").write_text(DATA)
    (home / "p.yaml").write_text(PIPELINE % (json.dumps(["/usr/bin/python3", "-c", TRAIN]), project,
                                           json.dumps(["/usr/bin/python3", "-c", EVALUATE]), project, model))
    (home / "m.yaml").write_text(MONITOR % model)
    caller = Caller(port, token)
    cli = lambda *args: command_line(home, port, token, project, *args)  # noqa: E731
    server.admin().post("/api/v1/projects", {"name": project}, expect=201)
    cli("dataset", "push", "d", home / "data.csv")
    cli("apply", "-f", home / "p.yaml")
    with Worker(server, f"worker-{project}", url=f"http://127.0.0.1:{port}", cpus=4, join_token=join_token(server.admin(), pool=project)):
        run = json.loads(cli("run", "submit", "p", "--wait", "-o", "json"))
        assert run["state"] == "succeeded", run
    cli("apply", "-f", home / "m.yaml")
    base = f"/api/v1/projects/{project}/monitors/m"
    for day in (1, 2, 3):
        got = caller.call("POST", f"{base}/observations", rows(day), **{"Content-Type": "text/csv"}).json()
        assert (got["rows"], got["duplicates"]) == (500, 0), got  # also of an answer to a repeated call
    labels = b"row_id,date,y\n" + b"".join(b"r1-%d,2020-05-01T%02d:00:00Z,%d\n" % (i, i % 24, i % 4) for i in range(500))
    caller.call("POST", f"{base}/labels", labels, **{"Content-Type": "text/csv"})
    caller.call("POST", f"{base}/windows/close", {"before": "2020-05-04T00:00:00Z"}, key=False)
    api = server.admin()
    until(lambda: len(api.get(f"{base}/decisions", expect=200).json()["items"]) >= 3, 30, 0.1, "windows are not decided on")
    return run["id"]


def what_it_came_to(server, project, run):
    """All but ids and times."""
    api, base = server.admin(), f"/api/v1/projects/{project}"
    out = {}
    for s in steps_of(api, run):
        [a] = attempts_of(api, s["id"])
        out[f"step {s['name']}"] = (s["state"], a["state"], a["exit_code"], a["log_complete"])
        out[f"log {s['name']}"] = raw_log(api, s["id"], "stdout")
        files = api.get(f"/api/v1/tracking-runs/{s['tracking_run']}/artifacts", expect=200).json()["items"]
        out[f"artifacts {s['name']}"] = sorted((f["path"], f["size"], hashlib.sha256(api.get(
            f"/api/v1/tracking-runs/{s['tracking_run']}/artifacts/{f['path']}", expect=200).body).hexdigest()) for f in files)
    version = api.get(f"{base}/models/model-{project}/versions/latest", expect=200).json()
    out["model"] = (version["number"], version["aliases"], version["gate"])
    out["files"] = sorted((f["path"], f["size"], f["digest"]) for f in api.get(f"{base}/models/model-{project}/versions/1/files").json()["items"])
    where = f"(SELECT id FROM project WHERE name = '{project}')"
    for name, sql in {
        "metrics": f"SELECT k.key, m.step, m.value FROM metric m JOIN metric_key k ON k.id = m.key_id JOIN tracking_run t ON t.id = m.tracking_id WHERE t.project_id = {where} AND k.key NOT LIKE 'system/%' ORDER BY 1, 2",  # figures of the host differ
        "params": f"SELECT p.key, p.value FROM param p JOIN tracking_run t ON t.id = p.tracking_id WHERE t.project_id = {where} ORDER BY 1",
        "rows": f"SELECT count(*), count(DISTINCT row_id), count(label) FROM observation o JOIN monitor_window w ON w.id = o.window_id JOIN monitor m ON m.id = w.monitor_id WHERE m.project_id = {where}",
        "windows": f"SELECT w.state, w.rows, w.labelled FROM monitor_window w JOIN monitor m ON m.id = w.monitor_id WHERE m.project_id = {where} ORDER BY w.start_at",
        "decisions": f"SELECT count(*) FROM decision d JOIN monitor m ON m.id = d.monitor_id WHERE m.project_id = {where}",
        "alias": f"SELECT count(*) FROM model_alias_history h JOIN model m ON m.id = h.model_id WHERE m.project_id = {where}",
        "versions": f"SELECT v.number, v.files, v.bytes FROM dataset_version v JOIN dataset d ON d.id = v.dataset_id WHERE d.project_id = {where}",
        "count": f"SELECT (SELECT count(*) FROM run WHERE project_id = {where}), (SELECT count(*) FROM attempt WHERE project_id = {where}), "
                 f"(SELECT count(*) FROM step_output o JOIN step s ON s.id = o.step_id JOIN run r ON r.id = s.run_id WHERE r.project_id = {where})",
    }.items():
        out[name] = server.sql(sql)
    return out


@pytest.fixture(scope="module")
def server():
    with Postgres() as pg, Server(pg) as s:
        s.admin()
        yield s


@pytest.fixture(scope="module")
def plain(server, tmp_path_factory):
    got = what_it_came_to(server, "plain", story(server, "plain", server.port, tmp_path_factory.mktemp("plain")))
    assert got["step train"] == ("succeeded", "succeeded", 0, True) and got["log train"].count(b"\n") == LINES
    assert len(got["metrics"]) == 30 and got["rows"] == ["1500|1500|500"] and len(got["files"]) == 2
    return got


def spared(request):
    return request.path.endswith("/workers/enroll") or request.path.endswith("/runs/create")


def everything_twice(rng):
    def rule(request):
        if request.method not in MUTATING or spared(request):
            return None
        # One that waits at the server for half a minute would come too late if it waited two times.
        return AT_ONCE if b'"wait":true' in request.body else rng.choice([twice("first"), twice("second"), AT_ONCE])
    return rule


def rough(rng):
    def rule(request):
        if spared(request) or rng.random() < 0.55:
            return None
        if request.method not in MUTATING:
            return rng.choice([DELAY, CUT_REPLY]) if "wait=" not in request.path else None
        return rng.choice([DROP, DROP, CUT_REPLY, CUT_REQUEST, DELAY])
    return rule


def both(rng):
    one, other = everything_twice(rng), rough(rng)
    return lambda request: one(request) if rng.random() < 0.5 else other(request)


@pytest.mark.parametrize("how", [everything_twice, rough] if os.environ.get("SOAK") else [both], ids=lambda f: f.__name__)
def test_the_result_is_the_same(server, plain, tmp_path, how):
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 31))
    print(f"SEED={seed}")
    project = how.__name__.replace("_", "-")
    with FaultProxy(server.port, how(random.Random(seed))) as proxy:
        run = story(server, project, proxy.port, tmp_path)
    print(dict(proxy.done))
    assert sum(n for fault, n in proxy.done.items() if fault) >= 20, proxy.done
    got = what_it_came_to(server, project, run)
    assert {k: v for k, v in got.items() if v != plain[k]} == {}
    assert got == plain
    server.command("fsck", "--deep")
