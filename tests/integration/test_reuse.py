"""What is not run again: steps that a run takes over from the one that it runs again, and steps that the cache has. Workers
are real."""
import contextlib
import hashlib
import json
import os
import subprocess
import threading

import pytest

import monitor_world
from harness import SANITIZERS, held, program, until
from stack import Wire, Worker, join_token, pipeline, raw_log, steps_of, submit, wait_for_run

pytestmark = pytest.mark.usefixtures("project")


@pytest.fixture(scope="module")
def worker(server):
    with Worker(server, "w1", cpus=8, join_token=join_token(server.admin())) as w:
        yield w


def rerun(api, run, expect=201, **body):
    return api.post(f"/api/v1/runs/{run['id']}/rerun", body, expect=expect).json()


def ended(api, run, state):
    run = wait_for_run(api, run["id"], 30)
    steps = {s["name"]: s for s in steps_of(api, run["id"])}
    assert run["state"] == state, [(s["name"], s["state"], s.get("message")) for s in steps.values()]
    return run, steps


def count(folder, step):
    return (folder / step).read_text().count("\n") if (folder / step).exists() else 0


def flaky(shared, **more):
    """make → use (fails without `ok`) → last: each says that it has run, and hands on a value and a file."""
    said = f"echo x >> {shared}/$TIDEMILL_STEP; "
    return pipeline("flaky", {
        "make": {"run": said + "printf 17 > $TIDEMILL_OUTPUT/rows; echo data > $TIDEMILL_OUTPUT/f",
                 "outputs": {"rows": {"path": "rows", "kind": "value"}, "files": {"path": "f"}}},
        "use": {"needs": ["make"], "env": {"ROWS": "${steps.make.outputs.rows}", "ID": "${run.id}"},
                "run": said + f"echo $ROWS $ID; cat $TIDEMILL_INPUT_MAKE/f; test -e {shared}/ok",
                "outputs": {}},
        "last": {"needs": ["use"], "run": said + "true"}}, **more)


def test_only_what_has_not_succeeded_runs_again(server, api, worker, shared):
    old, before = ended(api, submit(api, "demo", flaky(shared)), "failed")
    (shared / "ok").touch()
    new = rerun(api, old)
    assert (new["rerun_of"], new["rerun_from"], new["trigger"], new["pipeline"]) == (old["id"], "failed", "rerun", "flaky")
    assert new["inputs"] == old["inputs"] and new["created_by"] == old["created_by"]
    new, after = ended(api, new, "succeeded")
    assert [count(shared, s) for s in ("make", "use", "last")] == [1, 2, 1]
    make = after["make"]
    assert make["reused"] == {"by": "rerun", "run_id": old["id"], "step_id": before["make"]["id"], "ended_at": before["make"]["ended_at"]}
    assert make["message"] == f"taken over from {old['id']}" and (make["attempts"], make["started_at"]) == (0, None)
    assert make["outputs"] == before["make"]["outputs"]
    assert "reused" not in after["use"] and after["use"]["attempts"] == 1
    assert raw_log(api, after["use"]["id"], "stdout") == f"17 {new['id']}\ndata\n".encode()
    assert raw_log(api, before["use"]["id"], "stdout") == f"17 {old['id']}\ndata\n".encode()
    assert api.get(f"/api/v1/steps/{make['id']}/outputs/files/f", expect=200).body == b"data\n"
    assert new["started_at"] >= new["created_at"]
    events = server.sql(f"SELECT type, subject FROM event WHERE subject = '{new['id']}' OR subject = '{make['id']}' ORDER BY id")
    assert [e.split("|")[0] for e in events] == ["run.created", "step.succeeded", "run.running", "run.succeeded"]
    fsck(server)


def fsck(server):
    assert server.command("fsck", "--deep").endswith(" 0 faults")


def test_a_run_that_is_run_again_may_go(server, api, worker, shared):
    old, _ = ended(api, submit(api, "demo", flaky(shared)), "failed")
    new, _ = ended(api, rerun(api, old), "failed")
    api.delete(f"/api/v1/runs/{old['id']}", expect=204)
    assert api.get(f"/api/v1/runs/{new['id']}", expect=200).json()["rerun_of"] == old["id"]
    (shared / "ok").touch()
    third, steps = ended(api, rerun(api, new), "succeeded")
    assert steps["make"]["reused"]["run_id"] == old["id"] and count(shared, "make") == 1
    assert api.get(f"/api/v1/steps/{steps['make']['id']}/outputs/files/f", expect=200).body == b"data\n"


def test_all_of_it_runs_again_from_the_start(api, worker, shared):
    (shared / "ok").touch()
    old, _ = ended(api, submit(api, "demo", flaky(shared)), "succeeded")
    said = rerun(api, old, expect=409)
    assert "nothing of the run has failed" in said["detail"]
    new, steps = ended(api, rerun(api, old, **{"from": "start"}), "succeeded")
    assert new["rerun_from"] == "start" and [count(shared, s) for s in ("make", "use", "last")] == [2, 2, 2]
    # What is filled in late is filled in anew.
    assert raw_log(api, steps["use"]["id"], "stdout") == f"17 {new['id']}\ndata\n".encode()


def test_what_cannot_be_run_again_says_so(server, api, worker, shared):
    hand = Wire(server, "by-hand", pool="hands")
    source = pipeline("held", {"a": {"run": ["true"], "placement": {"pool": "hands"}}})
    run = submit(api, "demo", source)
    assert "has not ended" in rerun(api, run, expect=409)["detail"]
    assert [e["pointer"] for e in rerun(api, run, expect=422, **{"from": "end"})["errors"]] == ["/from"]
    assert api.post("/api/v1/runs/run_00000000000000000000000000/rerun", {}).status == 404
    stranger = server.person("stranger", "demo", "viewer")
    assert stranger.post(f"/api/v1/runs/{run['id']}/rerun", {}).status == 403
    api.post("/api/v1/projects", {"name": "other"}, expect=201)
    assert server.person("outsider", "other", "owner").post(f"/api/v1/runs/{run['id']}/rerun", {}).status == 404
    api.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    run = wait_for_run(api, run["id"], 20)
    # A cancelled run goes on with what had not succeeded; a model that it had pinned must be there.
    server.sql(f"UPDATE run SET models = '{{\"champion\": \"mv_gone\"}}' WHERE id = '{run['id']}'")
    assert "of its model champion is gone" in rerun(api, run, expect=409)["detail"]
    server.sql(f"UPDATE run SET models = '{{}}' WHERE id = '{run['id']}'")
    new = rerun(api, run)
    hand.finish(hand.take(new["id"])["attempt"])
    ended(api, new, "succeeded")


def test_a_repeated_request_makes_one_run(api, worker, shared):
    old, _ = ended(api, submit(api, "demo", flaky(shared)), "failed")
    path, key = f"/api/v1/runs/{old['id']}/rerun", {"Idempotency-Key": f"again-{old['id']}"}
    replies = [api.post(path, {}, headers=key, expect=201) for _ in range(3)]
    assert len({r.json()["id"] for r in replies}) == 1
    assert [r.headers.get("Idempotency-Replayed") for r in replies] == [None, "true", "true"]
    assert api.post(path, {"from": "start"}, headers=key).status == 422


def test_the_group_of_a_run_holds_for_one_that_runs_it_again(server, api, worker, shared):
    source = flaky(shared, concurrency={"group": "alone", "policy": "refuse"})
    old, _ = ended(api, submit(api, "demo", source), "failed")
    hand = Wire(server, "group-hand", pool="group-hands")
    open_run = submit(api, "demo", pipeline("blocks", {"a": {"run": ["true"], "placement": {"pool": "group-hands"}}},
                                            concurrency={"group": "alone", "policy": "queue"}))
    assert "a run of the concurrency group is open" in rerun(api, old, expect=409)["detail"]
    hand.finish(hand.take(open_run["id"])["attempt"])
    wait_for_run(api, open_run["id"], 20)
    (shared / "ok").touch()
    ended(api, rerun(api, old), "succeeded")
    # A group that lets one in after the other does so here as well; what is taken over has it at once.
    source = flaky(shared, concurrency={"group": "one", "policy": "queue"})
    (shared / "ok").unlink()
    old, _ = ended(api, submit(api, "demo", source), "failed")
    first = submit(api, "demo", pipeline("holds", {"a": {"run": ["true"], "placement": {"pool": "group-hands"}}},
                                         concurrency={"group": "one", "policy": "queue"}))
    job = hand.take(first["id"])
    new = rerun(api, old)
    assert new["state"] == "queued"
    assert [s["state"] for s in steps_of(api, new["id"])] == ["succeeded", "waiting", "waiting"]
    (shared / "ok").touch()
    hand.finish(job["attempt"])
    ended(api, new, "succeeded")


LOG = """
import json, os, sys, urllib.request
token = open(os.environ["TIDEMILL_TOKEN_FILE"]).read()
def call(op, body):
    urllib.request.urlopen(urllib.request.Request(os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/" + op,
        json.dumps({"run_id": os.environ["MLFLOW_RUN_ID"], **body}).encode(), {"Authorization": "Bearer " + token, "Content-Type": "application/json"}))
for step, value in enumerate((9.0, float(sys.argv[1]))):
    call("log-metric", {"key": "mae", "value": value, "timestamp": step, "step": step})
call("log-parameter", {"key": "alpha", "value": sys.argv[1]})
call("set-tag", {"key": "note", "value": "best " + sys.argv[1]})
open(os.environ["TIDEMILL_OUTPUT"] + "/m", "w").write(sys.argv[1])
"""


def test_only_combinations_that_failed_run_again(server, api, worker, shared):
    script = f"echo x >> {shared}/$TIDEMILL_STEP; [ $1 != 3 ] || [ -e {shared}/ok ] || exit 1; exec /usr/bin/python3 -c \"$LOG\" $1"
    source = pipeline("sweep", {
        "train": {"run": ["sh", "-c", script, "x", "${matrix.alpha}"], "env": {"LOG": LOG.replace("$", "$$")},
                  "outputs": {"m": {"path": "m", "kind": "model"}},
                  "matrix": {"values": {"alpha": [2, 3, 1]}, "select": {"metric": "mae", "mode": "min"}}},
        "use": {"needs": ["train"], "run": "cat $TIDEMILL_INPUT_TRAIN/m"}},
        model={"name": "swept", "from": "train.m"})
    old, before = ended(api, submit(api, "demo", source), "failed")
    (shared / "ok").touch()
    new, after = ended(api, rerun(api, old), "succeeded")
    assert {n: count(shared, n) for n in before if n != "use" and n != "train"} == {
        "train.alpha-2": 1, "train.alpha-3": 2, "train.alpha-1": 1}
    assert {n: "reused" in s for n, s in after.items()} == {
        "train": False, "train.alpha-2": True, "train.alpha-3": False, "train.alpha-1": True, "use": False}
    assert after["train"]["selected"] == "train.alpha-1" and after["train.alpha-1"]["metric_value"] == 1
    assert raw_log(api, after["use"]["id"], "stdout") == b"1" and new["model_version"] == "swept/1"
    tracked = api.get(f"/api/v1/tracking-runs/{after['train.alpha-1']['tracking_run']}", expect=200).json()
    assert {m["key"]: m["value"] for m in tracked["metrics"]} == {"mae": 1}  # none of the host on which it ran
    assert {p["key"]: p["value"] for p in tracked["params"]} == {"alpha": "1", "matrix.alpha": "1"}
    assert {t["key"]: t["value"] for t in tracked["tags"]} == {
        "note": "best 1", "mlflow.parentRunId": after["train"]["tracking_run"]}
    # All of it has succeeded: the choice is taken over with the rest when what needs it is run again.
    server.sql(f"UPDATE run SET state = 'failed' WHERE id = '{new['id']}'")
    third, last = ended(api, rerun(api, new), "succeeded")
    assert all("reused" in s for s in last.values()) and last["train"]["selected"] == "train.alpha-1"
    assert third["model_version"] == "swept/2" and third["started_at"] is None
    fsck(server)


def test_a_choice_by_a_figure_of_the_host_is_the_same_when_it_is_taken_over(server, api, worker, shared):
    train = {"run": f"test $1 = 1 || test -e {shared}/ok", "matrix": {"values": {"k": [1, 2]}, "select": {
        "metric": "system/cpu_utilization_percentage", "mode": "min"}}}
    source = pipeline("hosts", {"train": {**train, "run": ["sh", "-c", train["run"], "x", "${matrix.k}"]}})
    old, before = ended(api, submit(api, "demo", source), "failed")
    put_metric = {"key": "system/cpu_utilization_percentage", "timestamp": 1, "step": 1}
    for name, value in (("train.k-1", 3.5), ("train.k-2", 9)):
        for key in (put_metric["key"], "system/other"):
            api.post("/api/2.0/mlflow/runs/log-metric", {**put_metric, "key": key, "value": value, "run_id": before[name]["tracking_run"]},
                     expect=200)
    (shared / "ok").touch()
    hand_over = rerun(api, old)
    taken = next(s for s in steps_of(api, hand_over["id"]) if s["name"] == "train.k-1")
    assert taken["metric_value"] == 3.5
    tracked = api.get(f"/api/v1/tracking-runs/{taken['tracking_run']}", expect=200).json()
    assert {m["key"]: m["value"] for m in tracked["metrics"]} == {put_metric["key"]: 3.5}


def test_what_an_earlier_release_has_filled_in_is_not_filled_in_again(server, api, worker, shared):
    """It kept nothing of what was written; what is taken over is as it was."""
    old, steps = ended(api, submit(api, "demo", flaky(shared)), "failed")
    server.sql(f"UPDATE step SET written = NULL WHERE id = '{steps['use']['id']}'")
    said = rerun(api, old, expect=409)["detail"]
    assert said.startswith("the step use was filled in by an earlier release"), said
    assert rerun(api, old, expect=409, **{"from": "start"})["detail"] == said
    server.sql(f"UPDATE step SET state = 'succeeded' WHERE id = '{steps['use']['id']}'")
    _, after = ended(api, rerun(api, old), "succeeded")
    server.sql(f"UPDATE step SET state = 'failed' WHERE id = '{steps['use']['id']}'")
    assert {name for name, s in after.items() if "reused" in s} == {"make", "use"}
    # Words that only look like it were never filled in.
    source = pipeline("looks", {"a": {"run": f"echo '$${{steps.a.outputs.b}}'; test -e {shared}/never"}})
    old, _ = ended(api, submit(api, "demo", source), "failed")
    ended(api, rerun(api, old), "failed")


def test_the_cache_does_not_find_what_was_taken_over_without_its_artifacts(server, api, worker, shared):
    api.post("/api/v1/projects", {"name": "swept", "retention": {"artifacts": "1d"}}, expect=201)
    source = pipeline("swept", {"make": {"run": f"echo x >> {shared}/make", "cache": {}},
                                "use": {"needs": ["make"], "run": f"test -e {shared}/ok"}})
    digest = hashlib.sha256(b"a").hexdigest()
    api.put(f"/api/v1/projects/swept/blobs/{digest}", b"a", expect=(200, 201, 204))

    def go(age):
        run, steps = ended(api, submit(api, "swept", source), "failed")
        server.sql(f"INSERT INTO artifact (tracking_id, path, size, digest) SELECT t.id, 'a.txt', 1, '\\x{digest}'"
                   f" FROM tracking_run t WHERE t.step_id = '{steps['make']['id']}' ON CONFLICT DO NOTHING")
        server.sql(f"UPDATE step SET ended_at = ended_at - interval '{age} hours' WHERE run_id = '{run['id']}'")
        server.sql(f"UPDATE tracking_run SET end_time = end_time - {age} * 3600000 WHERE step_id = '{steps['make']['id']}'")
        api.post("/api/v1/projects/swept/retention", expect=200)
        again, _ = ended(api, rerun(api, run), "failed")
        server.sql(f"UPDATE step SET cache_key = NULL WHERE run_id = '{run['id']}'")
        _, after = ended(api, submit(api, "swept", source), "failed")
        server.sql("UPDATE step SET cache_key = NULL WHERE project_id IN (SELECT id FROM project WHERE name = 'swept')")
        return after["make"].get("reused", {}).get("by")
    assert go(23) == "cache"
    assert go(25) is None
    fsck(server)


def test_what_a_newer_run_has_taken_over_is_kept(server, api, worker, shared):
    """By retention and by the collector of bytes: the new run has references of its own."""
    api.post("/api/v1/projects", {"name": "kept", "retention": {"runs": "1d", "artifacts": "1d"}}, expect=201)
    script = f"echo x >> {shared}/$TIDEMILL_STEP; exec /usr/bin/python3 -c \"$PUT\""
    put = ("import os, urllib.request as u; o = os.environ; open(o['TIDEMILL_OUTPUT'] + '/f', 'w').write('output of ' + o['TIDEMILL_RUN_ID']);"
           " u.urlopen(u.Request(o['MLFLOW_TRACKING_URI'] + '/api/2.0/mlflow-artifacts/artifacts/' + o['MLFLOW_EXPERIMENT_ID'] + '/'"
           " + o['MLFLOW_RUN_ID'] + '/artifacts/a.txt', b'artifact', {'Authorization': 'Bearer ' + open(o['TIDEMILL_TOKEN_FILE']).read()},"
           " method='PUT'))")
    source = pipeline("kept", {"make": {"run": ["sh", "-c", script], "env": {"PUT": put}, "outputs": {"f": {"path": "f"}}},
                               "use": {"needs": ["make"], "run": f"cat $TIDEMILL_INPUT_MAKE/f; test -e {shared}/ok"}})
    old = submit(api, "kept", source)
    old, before = ended(api, old, "failed")
    new, _ = ended(api, rerun(api, old), "failed")
    server.sql(f"UPDATE run SET ended_at = ended_at - interval '2 days' WHERE id = '{old['id']}'")
    server.sql(f"UPDATE tracking_run SET end_time = end_time - 172800000 WHERE step_id = '{before['make']['id']}'")
    orphan = b"nothing refers to these bytes"
    api.put(f"/api/v1/projects/kept/blobs/{hashlib.sha256(orphan).hexdigest()}", orphan, expect=(200, 201, 204))
    server.sql("UPDATE blob SET touched_at = now() - interval '30 days'")
    done = api.post("/api/v1/projects/kept/retention", expect=200).json()
    assert (done["runs"], done["artifacts"], done["bytes"]) == (1, 0, len(orphan)), done  # the artifacts went with their run
    assert api.get(f"/api/v1/runs/{old['id']}").status == 404
    (shared / "ok").touch()
    _, steps = ended(api, rerun(api, new), "succeeded")
    assert count(shared, "make") == 1
    text = f"output of {old['id']}".encode()
    assert raw_log(api, steps["use"]["id"], "stdout") == text
    assert api.get(f"/api/v1/steps/{steps['make']['id']}/outputs/f/f", expect=200).body == text
    experiment = new["experiment_id"]
    assert api.get(f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/{steps['make']['tracking_run']}/artifacts/a.txt",
                   expect=200).body == b"artifact"
    fsck(server)


def test_the_command_line(server, api, worker, shared, tmp_path):
    old, _ = ended(api, submit(api, "demo", flaky(shared)), "failed")
    env = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(tmp_path), "TIDEMILL_SERVER": f"http://127.0.0.1:{server.port}",
           "TIDEMILL_TOKEN": server.token, **SANITIZERS}

    def tidemill(*args, expect=0):
        done = subprocess.run([str(program("tidemill")), *args], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        return done

    (shared / "ok").touch()
    done = tidemill("run", "rerun", old["id"], "--follow")
    new = api.get("/api/v1/projects/demo/runs?limit=1", expect=200).json()["items"][0]
    assert f"==> make was taken over from {old['id']}, which has its log <==" in done.stderr and f"17 {new['id']}" in done.stdout
    shown = json.loads(tidemill("run", "show", new["id"], "-o", "json").stdout)
    assert shown["rerun_of"] == old["id"]
    assert old["id"] in tidemill("run", "show", new["id"]).stdout
    lines = tidemill("run", "steps", new["id"]).stdout.splitlines()
    assert ["TAKEN FROM" in lines[0], old["id"] in lines[1], old["id"] in lines[2]] == [True, True, False]
    assert "nothing of the run has failed" in tidemill("run", "rerun", new["id"], expect=5).stderr
    tidemill("run", "rerun", new["id"], "--from", "start", "--wait")


# ---- the cache of steps ----


def run_to_end(api, source, state="succeeded", project="demo", **kw):
    run = wait_for_run(api, submit(api, project, source, **kw)["id"], 30)
    steps = {s["name"]: s for s in steps_of(api, run["id"])}
    assert run["state"] == state, [(s["name"], s["state"], s.get("message")) for s in steps.values()]
    return run, steps


def from_cache(steps):
    return {name for name, s in steps.items() if s.get("reused", {}).get("by") == "cache"}


def chain(shared, cache=None, **more):
    """first → second (a value and a file of first) → last, which is not cached."""
    said = f"echo x >> {shared}/$TIDEMILL_STEP; "
    cache = {"cache": {} if cache is None else cache}
    return pipeline("chain", {
        "first": {"run": said + "printf %s $WORD > $TIDEMILL_OUTPUT/word; echo file > $TIDEMILL_OUTPUT/f",
                  "env": {"WORD": "${inputs.word}"}, **cache,
                  "outputs": {"word": {"path": "word", "kind": "value"}, "files": {"path": "f"}}},
        "second": {"needs": ["first"], "run": said + "cat $TIDEMILL_INPUT_FIRST/f > $TIDEMILL_OUTPUT/g; echo $WORD >> $TIDEMILL_OUTPUT/g",
                   "env": {"WORD": "${steps.first.outputs.word}"}, "outputs": {"g": {"path": "g"}}, **cache},
        "last": {"needs": ["second"], "run": said + "cat $TIDEMILL_INPUT_SECOND/g"}},
        inputs={"word": {"type": "string", "default": "one"}}, **more)


def test_what_is_the_same_is_not_run_again(server, api, worker, shared):
    first, before = run_to_end(api, chain(shared))
    assert from_cache(before) == set() and "no_cache" not in first
    again, after = run_to_end(api, chain(shared))
    assert from_cache(after) == {"first", "second"}
    assert [count(shared, s) for s in ("first", "second", "last")] == [1, 1, 2]
    for name in ("first", "second"):
        assert after[name]["reused"] == {"by": "cache", "run_id": first["id"], "step_id": before[name]["id"],
                                         "ended_at": before[name]["ended_at"]}
        assert after[name]["message"] == f"cached: taken over from {first['id']}" and after[name]["attempts"] == 0
        assert after[name]["outputs"] == before[name]["outputs"]
    assert after["second"]["spec"]["env"]["WORD"] == "one"
    assert raw_log(api, after["last"]["id"], "stdout") == b"file\none\n" and again["started_at"]
    assert server.sql(f"SELECT data ->> 'reused_from' FROM event WHERE subject = '{after['first']['id']}' AND type = 'step.succeeded'") == [
        first["id"]]
    # A third says where it really ran; and so it does when that run is gone.
    api.delete(f"/api/v1/runs/{first['id']}", expect=204)
    _, third = run_to_end(api, chain(shared))
    assert from_cache(third) == {"first", "second"} and third["first"]["reused"]["run_id"] == first["id"]
    assert raw_log(api, third["last"]["id"], "stdout") == b"file\none\n"
    # Other words make another command, and other inputs of the next.
    _, other = run_to_end(api, chain(shared), inputs={"word": "two"})
    assert from_cache(other) == set()
    # A run may take nothing from the cache, and others may take what it has put out.
    _, none = run_to_end(api, chain(shared), inputs={"word": "two"}, no_cache=True)
    assert from_cache(none) == set()
    fresh, _ = run_to_end(api, chain(shared), inputs={"word": "three"}, no_cache=True)
    assert fresh["no_cache"] is True
    _, later = run_to_end(api, chain(shared), inputs={"word": "three"})
    assert from_cache(later) == {"first", "second"}
    assert server.command("fsck", "--deep").endswith(" 0 faults")


def test_only_what_has_succeeded_and_within_the_project(api, worker, shared):
    said = f"echo x >> {shared}/$TIDEMILL_STEP; "
    source = pipeline("bad", {"a": {"run": said + f"test -e {shared}/ok", "cache": {}}})
    run_to_end(api, source, "failed")
    run_to_end(api, source, "failed")
    assert count(shared, "a") == 2
    (shared / "ok").touch()
    run_to_end(api, source)
    _, steps = run_to_end(api, source)
    assert count(shared, "a") == 3 and from_cache(steps) == {"a"}
    api.post("/api/v1/projects", {"name": "elsewhere"}, expect=201)
    _, steps = run_to_end(api, source, project="elsewhere")
    assert count(shared, "a") == 4 and from_cache(steps) == set()


def test_what_it_needs_counts_unless_the_file_says_otherwise(api, worker, shared):
    def source(text, **cache):
        return pipeline("needs", {
            "make": {"run": f"echo {text} > $TIDEMILL_OUTPUT/f", "outputs": {"f": {"path": "f"}}},
            "use": {"needs": ["make"], "run": f"echo x >> {shared}/use", "cache": cache}})
    run_to_end(api, source("1"))
    assert from_cache(run_to_end(api, source("2"))[1]) == set()  # other bytes
    assert from_cache(run_to_end(api, source("1"))[1]) == {"use"}  # the same bytes, put out by another command or not
    run_to_end(api, source("1", by=["code"]))
    assert from_cache(run_to_end(api, source("3", by=["code"]))[1]) == {"use"}
    assert count(shared, "use") == 3


def test_data_sets_count(api, worker, shared):
    def source(**cache):
        return pipeline("data", {"a": {"run": f"echo x >> {shared}/a; cat $TIDEMILL_DATASET_D/f.csv", "cache": cache}},
                        datasets={"d": {"name": "cached", "version": "latest"}})
    monitor_world.dataset(api, "demo", "cached", {"f.csv": b"1\n"})
    run_to_end(api, source())
    run_to_end(api, source(by=["code", "inputs"]))
    assert from_cache(run_to_end(api, source())[1]) == {"a"}
    other = b"2\n"
    digest = hashlib.sha256(other).hexdigest()
    api.put(f"/api/v1/projects/demo/blobs/{digest}", other, expect=201)
    api.post("/api/v1/projects/demo/datasets/cached/versions", {"files": [{"path": "f.csv", "digest": digest, "size": 2}]}, expect=201)
    assert from_cache(run_to_end(api, source())[1]) == set()
    assert from_cache(run_to_end(api, source(by=["code", "inputs"]))[1]) == {"a"}


def test_what_is_too_old_is_run_again(server, api, worker, shared):
    source = pipeline("old", {"a": {"run": f"echo x >> {shared}/a", "cache": {"max_age": "2d"}}})
    run, _ = run_to_end(api, source)
    _, steps = run_to_end(api, source)
    assert from_cache(steps) == {"a"}
    # As old as it is by what really ran, however often it was taken over since.
    server.sql(f"UPDATE step SET ended_at = ended_at - interval '3 days' WHERE run_id = '{run['id']}'")
    server.sql("UPDATE step SET reused = reused || jsonb_build_object('ended_at', now() - interval '3 days')"
               f" WHERE id = '{steps['a']['id']}'")
    _, steps = run_to_end(api, source)
    assert from_cache(steps) == set() and count(shared, "a") == 2


def test_what_retention_may_have_taken_is_run_again(server, api, worker, shared):
    api.post("/api/v1/projects", {"name": "aged", "retention": {"artifacts": "1d"}}, expect=201)
    source = pipeline("aged", {"a": {"run": f"echo x >> {shared}/a", "cache": {}}})
    run, _ = run_to_end(api, source, project="aged")
    server.sql(f"UPDATE step SET ended_at = ended_at - interval '23 hours' WHERE run_id = '{run['id']}'")
    taken, steps = run_to_end(api, source, project="aged")
    assert from_cache(steps) == {"a"}
    server.sql(f"UPDATE step SET ended_at = ended_at - interval '25 hours' WHERE run_id IN ('{run['id']}', '{taken['id']}')")
    _, steps = run_to_end(api, source, project="aged")
    assert from_cache(steps) == set() and count(shared, "a") == 2


def test_combinations_and_what_is_chosen_of_them(api, worker, shared):
    said = f"echo x >> {shared}/$TIDEMILL_STEP; printf ${{matrix.k}} > $TIDEMILL_OUTPUT/v; echo ${{matrix.k}} > $TIDEMILL_OUTPUT/f"

    def source(values):
        return pipeline("sweep", {
            "train": {"run": said, "cache": {}, "matrix": {"values": {"k": values}, "max_parallel": 1},
                      "outputs": {"v": {"path": "v", "kind": "value"}, "f": {"path": "f"}}},
            "use": {"needs": ["train"], "run": "cat $TIDEMILL_INPUT_TRAIN/*/f"}})
    run_to_end(api, source(["a", "b"]))
    _, steps = run_to_end(api, source(["c", "b", "a"]))
    assert from_cache(steps) == {"train.k-a", "train.k-b"}
    assert raw_log(api, steps["use"]["id"], "stdout") == b"a\nb\nc\n"
    assert [count(shared, f"train.k-{k}") for k in "abc"] == [1, 1, 1]


def test_combinations_differ_by_themselves_and_by_them_what_needs_them(api, worker, shared):
    """The command names no value of the matrix; what needs the matrix becomes ready with the end of its last combination."""
    def source(word, **matrix):
        return pipeline("join", {
            "train": {"run": ["sh", "-c", f"echo x >> {shared}/train; {matrix.pop('log', '')} echo $TIDEMILL_STEP $1 > $TIDEMILL_OUTPUT/f",
                              "x", word], "env": {"LOG": LOG.replace("$", "$$")}, "cache": {},
                      "matrix": {"values": {"k": ["a", "b"]}, **matrix}, "outputs": {"f": {"path": "f"}}},
            "use": {"needs": ["train"], "run": f"cat $(find $TIDEMILL_INPUT_TRAIN -type f | sort) | tee {shared}/said > $TIDEMILL_OUTPUT/said",
                    "cache": {}, "outputs": {"said": {"path": "said"}}}})
    chosen = {"select": {"metric": "mae", "mode": "min"}, "log": "/usr/bin/python3 -c \"$LOG\" 1;"}
    for matrix, said in (({}, "train.k-a {0}\ntrain.k-b {0}\n"), (chosen, "train.k-a {0}\n")):
        (shared / "train").unlink(missing_ok=True)
        for word, cached in (("one", False), ("two", False), ("one", True)):
            _, steps = run_to_end(api, source(word, **matrix))
            assert from_cache(steps) == ({"train.k-a", "train.k-b", "use"} if cached else set()), word
            text = api.get(f"/api/v1/steps/{steps['use']['id']}/outputs/said/said", expect=200).body.decode()
            assert text == said.format(word) and count(shared, "train") == (4 if word == "two" or cached else 2)


@contextlib.contextmanager
def slow(server, event, when):
    """Statements with this event wait as long as the block lasts, each row of which this is true."""
    server.sql(f"CREATE TABLE slow AS SELECT 1; CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
               f" WHILE {when} AND EXISTS (SELECT FROM slow) LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN NEW; END $$;"
               f" CREATE TRIGGER slow {event} FOR EACH ROW EXECUTE FUNCTION slow()")
    try:
        yield
    finally:
        server.sql("DELETE FROM slow")
        server.sql("DROP FUNCTION slow CASCADE; DROP TABLE slow")


def test_what_is_being_removed_is_run_again_and_holds_up_nobody(server, api, worker, shared):
    source = pipeline("going", {"a": {"run": f"echo x >> {shared}/a", "cache": {}}})
    old, _ = run_to_end(api, source)
    with held(server.database, f"BEGIN; DELETE FROM run WHERE id = '{old['id']}'", "ROLLBACK"):
        _, steps = run_to_end(api, source)
        assert from_cache(steps) == set() and count(shared, "a") == 2
        assert not [line for line in server.log().splitlines() if old["id"] in line and "not stored" in line]
    server.sql(f"DELETE FROM run WHERE id <> '{old['id']}' AND pipeline = 'going'")
    _, steps = run_to_end(api, source)
    assert from_cache(steps) == {"a"}


def test_what_takes_too_long_to_take_over_is_run(server, api, worker, shared):
    source = pipeline("slow", {"a": {"run": f"echo x >> {shared}/a; echo x > $TIDEMILL_OUTPUT/f", "cache": {}, "outputs": {"f": {"path": "f"}}}})
    run_to_end(api, source)
    with slow(server, "BEFORE INSERT ON step_output", "EXISTS (SELECT FROM step WHERE id = NEW.step_id AND attempts = 0)"):
        _, steps = run_to_end(api, source)
    assert from_cache(steps) == set() and count(shared, "a") == 2
    _, steps = run_to_end(api, source)
    assert from_cache(steps) == {"a"}


def test_runs_begin_while_one_of_their_pipeline_is_run_again(server, api, worker, shared):
    """That may take long: what is taken over has any number of files."""
    source = flaky(shared)
    api.put("/api/v1/projects/demo/pipelines/flaky", {"source": source}, expect=(200, 201))
    run = api.post("/api/v1/projects/demo/runs", {"pipeline": "flaky"}, expect=201).json()
    old, _ = ended(api, run, "failed")
    (shared / "ok").touch()
    got = {}
    again = threading.Thread(target=lambda: got.update(rerun(server.client(server.token), old)))
    with slow(server, "BEFORE INSERT ON step_output", "EXISTS (SELECT FROM step WHERE id = NEW.step_id AND attempts = 0)"):
        again.start()
        until(lambda: server.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
        beside = api.post("/api/v1/projects/demo/runs", {"pipeline": "flaky"}, expect=201).json()
        ended(api, beside, "succeeded")
    again.join(30)
    ended(api, got, "succeeded")
    assert (run["number"], beside["number"], got["number"]) == (run["number"], run["number"] + 1, run["number"] + 2)


def test_which_image_it_ran_in(server, api):
    """An image that is only named counts once it is known what the name stands for."""
    hand = Wire(server, "image-hand", runtimes=("docker",), pool="images")
    digests = ["sha256:" + c * 64 for c in "ab"]

    def source(image, **cache):
        step = {"run": ["true"], "image": image, "runtimes": ["docker"], "placement": {"pool": "images"}, "cache": cache}
        return pipeline("images", {"a": step, "b": {**step, "needs": ["a"]}})

    def go(image, digest, **cache):
        """The names of the steps that had to be run."""
        run, names = submit(api, "demo", source(image, **cache)), []

        def over():
            for job in hand.sync().get("assign", []):
                names.append(job["step_name"])
                hand.report(job["attempt"], "running", runtime="docker", started_at="2026-01-01T00:00:00Z",
                            evidence={"image": image, "image_ref": "repo/x@" + digest, "image_digest": digest})
                hand.finish(job["attempt"])
            return api.get(f"/api/v1/runs/{run['id']}", expect=200).json()["state"] == "succeeded"
        until(over, 20)
        return names
    name = "repo/x:1"
    assert go(name, digests[0]) == ["a", "b"]
    assert go(name, digests[0]) == ["a"]  # of b it is known from a
    assert go(name, digests[1]) == ["a", "b"]  # the tag has moved
    assert go("repo/x@" + digests[0], digests[0]) == ["a", "b"]
    assert go("repo/x@" + digests[0], digests[0]) == []
    assert go(name, digests[0], by=["code", "inputs"]) == ["a", "b"]
    assert go(name, digests[1], by=["code", "inputs"]) == []


def test_what_cannot_be_meant_is_refused(api):
    def refused(cache, field, words):
        e = api.post("/api/v1/projects/demo/runs", {"source": pipeline("p", {"a": {"run": ["true"], "cache": cache}})}, expect=422).json()
        assert [(x["pointer"], words in x["detail"]) for x in e["errors"]] == [("/source/spec/steps/a/cache" + field, True)], e
    refused({"by": ["code", "weather"]}, "/by/1", "code")
    refused({"by": []}, "/by", "must not be empty")
    refused({"max_age": "0s"}, "/max_age", "at least")
    refused({"key": "x"}, "/key", "")
