"""What steps make of each other: values, conditions, matrices. Workers are real, commands run as processes."""
import os

import pytest

from harness import until
from stack import Worker, attempts_of, join_token, pipeline, raw_log, steps_of, submit, wait_for_run


pytestmark = pytest.mark.usefixtures("project")


@pytest.fixture(scope="module")
def worker(server):
    with Worker(server, "w1", cpus=8, join_token=join_token(server.admin())) as w:
        yield w


def put(**files):
    """A command that writes these files to its output."""
    script = "; ".join(f"printf %s '{text}' > $TIDEMILL_OUTPUT/{name}" for name, text in files.items())
    return {"run": script, "outputs": {name: {"path": name, "kind": "value"} for name in files}}


def run_to_end(api, source, state="succeeded", **kw):
    run = wait_for_run(api, submit(api, "demo", source, **kw)["id"], 30)
    assert run["state"] == state, [(s["name"], s["state"], s.get("message")) for s in steps_of(api, run["id"])]
    return run, {s["name"]: s for s in steps_of(api, run["id"])}


def refused(api, source, field, words, **kw):
    e = api.post("/api/v1/projects/demo/runs", {"source": source, **kw}, expect=422).json()
    [at] = [x for x in e["errors"] if x["pointer"] == field]
    assert words in at["detail"], e


def test_values_of_a_run_may_be_more_than_a_look_holds(api, worker, server, shared):
    """Steps have put out 36 MiB: those that name some of it get it, those that name too much fail, and no step adds to it."""
    never = {"run": ["true"], "placement": {"requires": {"no": "such"}},
             "outputs": {f"v{k}": {"path": f"v{k}", "kind": "value"} for k in range(4)}}
    makers = {f"p{i}": never for i in range(150)}
    users = {f"c{i}": {"needs": ["go", f"p{i}"], "env": {f"V{k}": "${steps.p%d.outputs.v%d}" % (i, k) for k in range(4)},
                       "run": ["sh", "-c", "echo $${#V0} $${#V1} $${#V2} $${#V3}"]} for i in range(36)}
    run = submit(api, "demo", pipeline("much", {
        **makers, **users, "go": {"run": f"until [ -e {shared}/go ]; do sleep 0.05; done"},
        "more": {"needs": ["go"], **put(v="one more")},
        "greedy": {"needs": ["go", *list(makers)[:20]], "env": {f"V{i}": "${steps.p%d.outputs.v1}" % i for i in range(20)},
                   "run": ["true"]}}))["id"]
    values = ", ".join(f"'v{k}', jsonb_build_object('kind', 'value', 'value', repeat('x', 6{k}000))" for k in range(4))
    server.sql(f"DELETE FROM queue q USING step s WHERE s.id = q.step_id AND s.run_id = '{run}' AND s.name LIKE 'p%';"
               f" UPDATE step SET state = 'succeeded', queued_at = now(), ended_at = now(),"
               f" outputs = jsonb_build_object({values}) WHERE run_id = '{run}' AND name LIKE 'p%'")
    (shared / "go").touch()
    ended = wait_for_run(api, run, 60)
    steps = {}
    for line in server.sql(f"SELECT name, id, state, reason, message FROM step WHERE run_id = '{run}'"):
        name, *rest = line.split("|")
        steps[name] = rest
    assert ended["state"] == "failed" and {steps[name][1] for name in users} == {"succeeded"}
    assert raw_log(api, steps["c35"][0], "stdout") == b"60000 61000 62000 63000\n"
    assert steps["greedy"][2:] == ["bad_value", "names values of 1220000 bytes in all: command and variables have at most "
                                   "1048576 bytes, filled in"]
    assert steps["more"][2] == "output_invalid" and "v: the values of a run's steps have at most 16777216 bytes" in steps["more"][3]


def test_values_go_to_later_steps(api, worker):
    inputs = {"name": {"type": "string", "default": "x"}, "day": {"type": "date", "default": "2001-02-03"}}
    _, steps = run_to_end(api, pipeline("values", {
        "first": put(rows="17\n", long="a" * 60000, odd="$${inputs.name} $${x}"),
        "middle": {"needs": ["first"], "run": ["true"]},
        "last": {"needs": ["middle"], "env": {"ODD": "${steps.first.outputs.odd}"},
                 "run": ["sh", "-c", 'echo "$1 $ODD $${#2}"', "x", "${inputs.name}:${inputs.day + 1d}:${steps.first.outputs.rows}",
                         "${steps.first.outputs.long}"]}}, inputs=inputs))
    # A value is never looked through for references itself.
    assert raw_log(api, steps["last"]["id"], "stdout") == b"x:2001-02-04:17 ${inputs.name} ${x} 60000\n"
    assert steps["last"]["spec"]["run"][4] == "x:2001-02-04:17"
    assert steps["first"]["outputs"]["rows"] == {"kind": "value", "path": "rows", "files": 1, "bytes": 3, "value": "17\n"}


def test_a_value_that_cannot_be_one_fails_its_step(api, worker):
    for what, words in (("head -c 65537 /dev/zero | tr '\\0' a", "at most 65536 bytes"), ("printf '\\377'", "UTF-8 text"),
                        ("printf '\\033[1m'", "without control characters")):
        _, steps = run_to_end(api, pipeline("bad", {"a": {"run": what + " > $TIDEMILL_OUTPUT/v",
                              "outputs": {"v": {"path": "v", "kind": "value"}}}}), "failed")
        assert steps["a"]["reason"] == "output_invalid" and words in steps["a"]["message"], steps["a"]
    _, steps = run_to_end(api, pipeline("bad", {"a": {"run": "mkdir $TIDEMILL_OUTPUT/v; touch $TIDEMILL_OUTPUT/v/x",
                          "outputs": {"v": {"path": "v", "kind": "value"}}}}), "failed")
    assert "a value is one file" in steps["a"]["message"]


def test_a_step_that_cannot_take_a_value_fails_without_an_attempt(api, worker):
    run, steps = run_to_end(api, pipeline("late", {
        "a": put(v="maybe"),
        "b": {"needs": ["a"], "if": "${steps.a.outputs.v}", "run": ["true"]},
        "c": {"needs": ["b"], "run": ["true"]}}), "failed")
    assert (steps["b"]["state"], steps["b"]["reason"], steps["b"]["attempts"]) == ("failed", "bad_value", 0)
    assert steps["b"]["message"] == "if: must be true or false, and ${steps.a.outputs.v} is 'maybe'"
    assert (steps["c"]["state"], steps["c"]["reason"]) == ("skipped", "need_failed")
    assert run["reason"] == "bad_value" and "the step b failed: if: must be" in run["message"]


def test_references_to_steps_are_checked_when_they_are_written(api):
    a = put(v="1")
    a["outputs"]["files"] = {"path": "f"}
    for ref, words in (("steps.a.outputs.w", "there is no 'steps.a.outputs.w'"), ("steps.b.outputs.v", "there is no"),
                       ("steps.a.outputs.files", "is not of kind value"), ("steps.c.outputs.v", "'b' does not need 'c'")):
        refused(api, pipeline("p", {"a": a, "c": put(v="1"), "b": {"needs": ["a"], "run": ["echo", "${" + ref + "}"]}}),
                "/source/spec/steps/b/run/1", words)
    refused(api, pipeline("p", {"a": {"if": "perhaps", "run": ["true"]}}), "/source/spec/steps/a/if", "must be true, false or")
    refused(api, pipeline("p", {"a": {"if": "${inputs.x}", "run": ["true"]}},
                          inputs={"x": {"type": "string", "default": "no"}}),
            "/source/spec/steps/a/if", "must be true or false, and ${inputs.x} is 'no'")


def test_a_false_condition_skips_the_step_and_what_needs_it(api, worker):
    steps = {"a": {"run": ["true"]},
             "b": {"needs": ["a"], "if": "${inputs.full}", "run": ["true"]},
             "c": {"needs": ["b"], "if": "true", "run": ["true"]},
             "d": {"needs": ["a"], "run": ["true"]}}
    source = pipeline("cond", steps, inputs={"full": {"type": "boolean", "default": False}})
    run, now = run_to_end(api, source)
    assert {n: s["state"] for n, s in now.items()} == {"a": "succeeded", "b": "skipped", "c": "skipped", "d": "succeeded"}
    assert (now["b"]["reason"], now["c"]["reason"]) == ("condition_false", "need_skipped")
    assert now["c"]["message"].endswith(": b")
    assert now["b"]["attempts"] == 0 and now["b"]["ended_at"] and "message" not in run
    _, now = run_to_end(api, source, inputs={"full": True})
    assert {s["state"] for s in now.values()} == {"succeeded"}


def test_a_run_of_which_nothing_has_to_be_run_succeeds(server, api):
    run, steps = run_to_end(api, pipeline("none", {"a": {"if": "false", "run": ["true"]}, "b": {"needs": ["a"], "run": ["true"]}}))
    assert (steps["a"]["state"], steps["b"]["state"], run["started_at"]) == ("skipped", "skipped", None)
    assert server.sql(f"SELECT type FROM event WHERE subject = '{run['id']}' ORDER BY id") == ["run.created", "run.succeeded"]


def test_a_skipped_step_registers_no_model(server, api, worker):
    source = pipeline("model", {
        "check": put(ok="false"),
        "train": {"needs": ["check"], "if": "${steps.check.outputs.ok}", "run": "echo 1 > $TIDEMILL_OUTPUT/m",
                  "outputs": {"m": {"path": "m", "kind": "model"}}}}, model={"name": "skipped", "from": "train.m"})
    run, _ = run_to_end(api, source)
    assert run["message"] == ("No version of the model skipped was registered: the step train was skipped. "
                              "Its condition is false.")
    assert api.get("/api/v1/projects/demo/models/skipped").status == 404


def test_a_run_that_was_written_and_not_looked_at_goes_on(server, api, worker):
    """The server ends between the two: the sweep of the next one finds it."""
    other = submit(api, "demo", pipeline("seen", {"a": {"if": "true", "run": ["true"], "needs": []}}))
    wait_for_run(api, other["id"])
    assert server.sql(f"SELECT look FROM run WHERE id = '{other['id']}'") == ["f"]
    # As it would be found: nothing of it has been queued.
    server.sql(f"UPDATE step SET state = 'waiting', attempts = 0, ended_at = NULL WHERE run_id = '{other['id']}'")
    server.sql(f"DELETE FROM attempt WHERE run_id = '{other['id']}'")
    server.sql(f"UPDATE run SET state = 'queued', look = true, started_at = NULL, ended_at = NULL WHERE id = '{other['id']}'")
    assert wait_for_run(api, other["id"])["state"] == "succeeded"
    assert len(attempts_of(api, steps_of(api, other["id"])[0]["id"])) == 1


# ---- matrices ----

LOG = """
import json, os, sys, time, urllib.error, urllib.request
def post(path, body):
    request = urllib.request.Request(os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/" + path, json.dumps(body).encode(),
        {"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "Content-Type": "application/json"})
    while True:  # as MLflow's client does
        try:
            return urllib.request.urlopen(request).read()
        except urllib.error.HTTPError as e:
            raise SystemExit(e.read().decode())
        except OSError:
            time.sleep(0.1)
run = os.environ["MLFLOW_RUN_ID"]
for value in sys.argv[2:]:
    post("log-metric", {"run_id": run, "key": "mae", "value": value if value == "NaN" else float(value), "timestamp": 1, "step": 0})
post("log-parameter", {"run_id": run, "key": "alpha", "value": sys.argv[1]})
os.makedirs(os.environ["TIDEMILL_OUTPUT"] + "/m")
open(os.environ["TIDEMILL_OUTPUT"] + "/m/model.txt", "w").write(sys.argv[1])
open(os.environ["TIDEMILL_OUTPUT"] + "/alpha", "w").write(sys.argv[1])
"""
OUTPUTS = {"m": {"path": "m", "kind": "model"}, "alpha": {"path": "alpha", "kind": "value"}}


def sweep(values, metric="${matrix.mae}", **matrix):
    """A step that records matrix.mae as its metric and puts out its alpha."""
    run = ["/usr/bin/python3", "-c", LOG, "${matrix.alpha}"] + ([metric] if metric else [])
    return {"run": run, "outputs": OUTPUTS, "matrix": {"values": values, **matrix}}


def test_a_matrix_runs_each_combination_and_takes_the_best(api, worker):
    run, steps = run_to_end(api, pipeline("sweep", {
        "train": {**sweep({"alpha": [0.1, 1, 10]}, metric="${matrix.alpha}", select={"metric": "mae", "mode": "max"}),
                  "env": {"A": "${matrix.alpha}"}},
        "after": {"needs": ["train"], "run": ["sh", "-c", "cat $TIDEMILL_INPUT_TRAIN/m/model.txt; echo ' '$1", "x",
                                              "${steps.train.outputs.alpha}"]}},
        model={"name": "swept", "from": "train.m"}))
    names = ["train.alpha-0.1", "train.alpha-1", "train.alpha-10"]
    assert [s["name"] for s in sorted(steps.values(), key=lambda s: s["position"])] == ["train", *names, "after"]
    assert raw_log(api, steps["after"]["id"], "stdout") == b"10 10\n"
    train, best = steps["train"], steps["train.alpha-10"]
    assert (train["selected"], train["message"]) == (best["name"], "train.alpha-10 was chosen: mae 10.0, the greatest of 3")
    assert train["needs"] == names and train["attempts"] == 0 and train["outputs"] == best["outputs"]
    assert [steps[n]["matrix"] for n in names] == [{"alpha": "0.1"}, {"alpha": "1"}, {"alpha": "10"}]
    assert [steps[n]["metric_value"] for n in names] == [0.1, 1, 10] and best["matrix_of"] == "train"
    # MLflow sees nested runs; the step's own run has what was chosen.
    def tracked(s):
        d = api.get(f"/api/2.0/mlflow/runs/get?run_id={s['tracking_run']}", expect=200).json()["run"]["data"]
        return [{x["key"]: x["value"] for x in d.get(k, [])} for k in ("metrics", "params", "tags")]
    metrics, params, tags = tracked(best)
    # What it used of its host is a combination's own.
    assert ({k: v for k, v in metrics.items() if not k.startswith("system/")}, params) == ({"mae": 10}, {"alpha": "10", "matrix.alpha": "10"})
    assert tags["mlflow.parentRunId"] == train["tracking_run"]
    assert tracked(train)[:2] == [{"mae": 10}, {"alpha": "10", "matrix.alpha": "10"}]
    version = api.get("/api/v1/projects/demo/models/swept/versions/1", expect=200).json()
    assert version["metrics"] == {"mae": 10}
    files = api.get("/api/v1/projects/demo/models/swept/versions/1/files", expect=200).json()["items"]
    assert [f["path"] for f in files] == ["model.txt"]
    assert run["model_version"] == "swept/1"


def test_without_select_all_outputs_are_there(api, worker):
    _, steps = run_to_end(api, pipeline("all", {
        "train": sweep({"alpha": ["x", "y"], "full": [True, False]}, metric=None),
        "after": {"needs": ["train"], "run": "cd $TIDEMILL_INPUT_TRAIN && find . -type f | sort"}}))
    assert raw_log(api, steps["after"]["id"], "stdout").decode().split() == [
        f"./alpha-{a}.full-{f}/{p}" for a in "xy" for f in ("false", "true") for p in ("alpha", "m/model.txt")]
    assert steps["train"]["outputs"]["m"] == {"kind": "model", "path": "m", "files": 4, "bytes": 4}


def test_what_a_matrix_cannot_choose_fails_and_says_why(api, worker):
    for metrics, state, words in ((["NaN", 3, 2, 2], "succeeded", "train.mae-2 was chosen: mae 2.0, the least of 3"),
                                  (["NaN"], "failed", "the metric mae is a number in none of the combinations")):
        values = list(dict.fromkeys(metrics))
        source = pipeline("choose", {"train": sweep({"mae": values}, select={"metric": "mae"})})
        _, steps = run_to_end(api, source.replace("${matrix.alpha}", "1"), state)
        assert steps["train"]["message"] == words
    run, steps = run_to_end(api, pipeline("choose", {"train": sweep({"alpha": [1, 2]}, metric=None, select={"metric": "mae"})}),
                            "failed")
    assert steps["train"]["reason"] == run["reason"] == "metric_missing"
    assert steps["train"]["message"] == "train.alpha-1 has recorded no metric mae"


def test_one_failing_combination_fails_the_run_and_the_others_go_on(api, worker):
    run, steps = run_to_end(api, pipeline("one", {
        "train": {"run": ["sh", "-c", "exit ${matrix.code}"], "matrix": {"values": {"code": [0, 3, "0 "]}, "max_parallel": 1}},
        "after": {"needs": ["train"], "run": ["true"]}}), "failed")
    assert {n: s["state"] for n, s in steps.items()} == {
        "train": "skipped", "train.code-0": "succeeded", "train.code-3": "failed", "train.code-0-": "succeeded", "after": "skipped"}
    assert (steps["train"]["reason"], steps["after"]["reason"]) == ("need_failed", "need_failed")
    assert run["message"].startswith("the step train.code-3 failed")


def test_combinations_that_are_skipped_do_not_count(api, worker):
    step = {"run": ["true"], "if": "${matrix.full}", "matrix": {"values": {"full": [True, False]}}}
    _, steps = run_to_end(api, pipeline("some", {"train": step, "after": {"needs": ["train"], "run": ["true"]}}))
    assert [steps[n]["state"] for n in ("train", "train.full-true", "train.full-false", "after")] == [
        "succeeded", "succeeded", "skipped", "succeeded"]
    step["matrix"] = {"values": {"full": [False]}}
    _, steps = run_to_end(api, pipeline("some", {"train": step, "after": {"needs": ["train"], "run": ["true"]}}))
    assert {s["state"] for s in steps.values()} == {"skipped"}
    assert steps["after"]["reason"] == "need_skipped"


def test_a_matrix_in_a_matrix_and_values_in_it(api, worker):
    _, steps = run_to_end(api, pipeline("two", {
        "first": put(v="7"),
        "a": {**sweep({"alpha": [1, 2]}, metric="${matrix.alpha}", select={"metric": "mae"}), "needs": ["first"]},
        "b": {"needs": ["a"], "matrix": {"values": {"k": ["x", "y"]}},
              "run": ["echo", "${matrix.k} ${steps.a.outputs.alpha} ${steps.first.outputs.v}"]}}))
    assert [raw_log(api, steps[f"b.k-{k}"]["id"], "stdout") for k in "xy"] == [b"x 1 7\n", b"y 1 7\n"]


def test_no_more_than_max_parallel_are_on_their_way(server, api, worker, shared):
    hold = f"touch {shared}/${{matrix.n}}; while [ -e {shared}/hold ]; do sleep 0.05; done"
    (shared / "hold").touch()
    run = submit(api, "demo", pipeline("few", {"s": {"run": hold, "matrix": {"values": {"n": list(range(5))}, "max_parallel": 2}}}))

    def states():
        return [s["state"] for s in steps_of(api, run["id"]) if s.get("matrix_of")]
    until(lambda: states().count("running") == 2, 20, message=lambda: str(states()))
    assert states() == ["running", "running", "waiting", "waiting", "waiting"]
    third = steps_of(api, run["id"])[3]
    assert third["blocked"]["message"] == "waits for its turn: 2 of s may run at a time"
    w = api.get(f"/api/v1/steps/{third['id']}/blockers", expect=200).json()
    names = [s["name"] for s in steps_of(api, run["id"]) if s["state"] == "running"]
    [b] = w["blockers"]
    assert b["message"] == f"waits for its turn: max_parallel of s is 2, and {names[0]} (running), {names[1]} (running) are on the way"
    assert (b["kind"], b["what"], b["unit"], b["need"], b["free"], b["most"], b["steps"]) == ("parallel", "s", "steps", 1, 0, 2, names)
    (shared / "hold").unlink()
    assert wait_for_run(api, run["id"])["state"] == "succeeded"
    most = server.sql(f"""SELECT max(n) FROM (SELECT (SELECT count(*) FROM attempt b WHERE b.run_id = a.run_id
        AND b.created_at <= a.created_at AND b.ended_at > a.created_at) AS n FROM attempt a WHERE a.run_id = '{run['id']}') x""")
    assert most == ["2"]


def test_matrices_are_checked_when_they_are_written(api):
    def no(matrix, field, words, name="a", **more):
        refused(api, pipeline("p", {name: {"run": ["true"], "matrix": matrix}, **more}), f"/source/spec/steps/{name}{field}", words)
    no({"values": {"a": list(range(257))}}, "/matrix/values/a", "1 to 256 values")
    no({"values": {"a": list(range(20)), "b": list(range(20))}}, "/matrix/values", "more than 256 combinations")
    no({"values": {"a": [1, [2]]}}, "/matrix/values/a/1", "must be a text, a number")
    no({"values": {"a": [1, 1]}}, "/matrix/values/a/1", "is there twice")
    no({"values": {"a": 5}}, "/matrix/values/a", "must be a list of values")
    no({"values": {}}, "/matrix/values", "1 to 16 keys")
    no({"values": {"a": [1]}, "max_parallel": 0}, "/matrix/max_parallel", "1")
    no({"values": {"a": ["x" * 300]}}, "/matrix/values/a/0", "at most 255 bytes")
    refused(api, pipeline("p", {"a": {"run": ["true"], "matrix": {"values": {"n": [1]}}}, "a.n-1": {"run": ["true"]}}),
            "/source/spec/steps/a.n-1", "is the name of two steps")
    many = {f"s{i}": {"run": ["true"], "matrix": {"values": {"n": list(range(250))}}} for i in range(4)}
    refused(api, pipeline("p", many), "/source/spec/steps/s3/matrix/values", "at most 1000 steps")
    refused(api, pipeline("p", {"a": {"run": ["true"], "matrix": {"values": {"n": list(range(101))}}},
                                "b": {"run": ["true"], "needs": ["a"], "matrix": {"values": {"n": [1]}}}},
                          model={"name": "m", "from": "a.m"}), "/source/spec/model/from", "is no STEP.OUTPUT")


def test_the_server_dies_in_the_middle_of_a_matrix(server, api, worker, shared):
    """Nothing is started twice, and what was chosen is chosen once."""
    step = sweep({"alpha": list(range(1, 9))}, metric="${matrix.alpha}", max_parallel=3, select={"metric": "mae"})
    step["run"][2] = f"open('{shared}/' + __import__('sys').argv[1], 'a').write('x')\n" + LOG
    step["retries"] = {"infra": 0}
    run = submit(api, "demo", pipeline("killed", {"train": step, "after": {"needs": ["train"], "run": ["true"]}}))
    for n in (1, 3, 6):
        until(lambda: len(list(shared.iterdir())) >= n, 60)
        server.kill()
        server.start()
    assert wait_for_run(api, run["id"], 90)["state"] == "succeeded"
    assert {f.name: f.read_text() for f in shared.iterdir()} == {str(n): "x" for n in range(1, 9)}
    steps = steps_of(api, run["id"])
    assert all(len(attempts_of(api, s["id"])) == (0 if s["name"] == "train" else 1) for s in steps)
    assert steps[0]["selected"] == "train.alpha-1"
