"""What follows from lines of a log: the patterns a step names and Tidemill's own, as the server judges them (with a worker that the
test plays) and as the real worker finds them."""

import pytest

import stack
from harness import until
from test_engine import Hand, ended, pipeline, project, run_of, step, steps_of, submit  # noqa: F401
from test_queue import why

STARTED = "2026-01-01T00:00:00Z"


def match(policy, action, label="found", **more):
    return {"policy": policy, "match": "some", "action": action, "label": label, "count": 2, "line": 7, "time": STARTED,
            "text": "some line", **more}


def tell(hand, a, *matches, expect=204, epoch=None):
    body = {"epoch": epoch or a["epoch"], "matches": list(matches)}
    return hand.api.put(f"/api/v1/workers/self/attempts/{a['attempt']}/log/matches", body, expect=expect)


def fail(hand, a, *matches):
    if matches:
        tell(hand, a, *matches)
    hand.finish(a, "failed", reason="exit_code", exit_code=1, message="it failed", started_at=STARTED)


@pytest.fixture
def hand(server, admin, project):  # noqa: F811
    return Hand(server, admin, f"w-{project}", pool=project)


NOW = "{user: 3, infra: 3, backoff: {first: 0s}}"


def test_policies_reach_the_worker_with_tidemills_own(admin, project, hand):
    mine = '{policies: [{match: "a+", label: x}, {match: "b", action: notify}]}'
    submit(admin, project, pipeline({"a": step(project, logs=mine), "b": step(project, logs="{defaults: false}")}))
    got = {a["step_name"]: a for a in hand.take(2)}
    policies = got["a"]["log_policies"]
    assert policies[:2] == [{"match": "a+", "action": "label", "label": "x"}, {"match": "b", "action": "notify"}]
    assert {p["label"]: p["action"] for p in policies[2:]} == {
        "cuda-oom": "stop_retrying", "gpu-ecc": "avoid_node", "nccl": "label", "no-space": "label", "shm": "label",
        "cuda-illegal-access": "label"}
    assert got["b"].get("log_policies", []) == []
    for a in got.values():
        hand.finish(a)


@pytest.mark.parametrize("logs,pointer,words", [
    ('{policies: [{match: "ok"}, {match: "(x"}]}', "/steps/a/logs/policies/1/match", "no regular expression"),
    ('{policies: [{match: ""}]}', "/steps/a/logs/policies/0/match", "1"),
    ('{policies: [{action: label}]}', "/steps/a/logs/policies/0/match", ""),
    ('{policies: [{match: x, action: explode}]}', "/steps/a/logs/policies/0/action", "stop_retrying"),
    ("{policies: [" + ", ".join(["{match: x}"] * 33) + "]}", "/steps/a/logs/policies", "32"),
    ("{policies: [{match: '\\pL{99}'}]}", "/steps/a/logs/policies/0/match", "repeats too much")],
    ids=["bracket", "empty", "none", "action", "many", "large"])
def test_policies_that_make_no_sense_are_refused(admin, project, logs, pointer, words):
    refused = admin.post(f"/api/v1/projects/{project}/runs", {"source": pipeline({"a": step(project, logs=logs)})})
    assert refused.status == 422 and pointer in str(refused.json()) and words in str(refused.json()), refused.json()


def test_stop_retrying(admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project, retries=NOW)}))
    [a] = hand.take()
    fail(hand, a, match(0, "label"))
    [a] = hand.take()
    tell(hand, a, match(0, "stop_retrying", label="nan"))
    hand.finish(a, "failed", reason="staging_failed")  # not the command's fault: its log has nothing to say of that
    [a] = hand.take()
    fail(hand, a, match(0, "stop_retrying", label="nan"))
    ended(admin, run, "failed")
    [s] = steps_of(admin, run).values()
    assert s["attempts"] == 3 and s["message"] == "it failed; not tried again: line 7 of its log matches nan"


def test_avoid_node(server, admin, project):  # noqa: F811
    bad, good = (Hand(server, admin, f"{n}-{project}", pool=project) for n in "ab")
    run = submit(admin, project, pipeline({"a": step(project, retries="{user: 0, infra: 2, backoff: {first: 0s}}")}))
    [a] = bad.take()
    fail(bad, a, match(0, "avoid_node", label="gpu-ecc"))
    until(lambda: bad.sync() and any("is avoided by the log" in b["message"] for b in why(admin, run)["blockers"]), 20,
          message=lambda: str(why(admin, run)))
    bad.sync()
    assert not bad.fresh
    [b] = good.take()
    assert b["step"] == a["step"] and not bad.fresh
    fail(good, b, match(0, "avoid_node", label="gpu-ecc"))
    until(lambda: bad.sync() and good.sync() and any(x["kind"] == "avoids" for x in why(admin, run)["blockers"]), 20,
          message=lambda: str(why(admin, run)))
    [blocker] = why(admin, run)["blockers"]
    assert "is avoided by the log of an earlier attempt" in blocker["message"] and f"-{project}" in blocker["message"], blocker
    assert not bad.fresh and not good.fresh
    other = submit(admin, project, pipeline({"a": step(project)}))  # of other steps nothing is kept away
    until(lambda: bad.sync() and good.sync() and (bad.fresh or good.fresh), 20)
    for hand in (bad, good):
        for x in list(hand.fresh):
            hand.finish(*hand.take())
            assert x["run"] == other["id"]
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    ended(admin, run, "cancelled")


def test_matches_are_kept_and_notified_once(server, admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project)}))
    [a] = hand.take()
    tell(hand, a, match(3, "notify"))
    tell(hand, a, match(3, "notify", count=5), match(4, "label"))
    tell(hand, a, match(4, "label", count=9))  # a worker that counts anew
    tell(hand, a, match(9, "notify"), epoch=a["epoch"] + 1, expect=409)
    assert tell(hand, a, match(64, "notify"), expect=422).json()["errors"][0]["pointer"] == "/matches/0/policy"
    [at] = admin.get(f"/api/v1/steps/{a['step']}/attempts", expect=200).json()["items"]
    assert [(m["policy"], m["count"]) for m in at["log_matches"]] == [(3, 5), (4, 9)]
    [data] = server.sql(f"SELECT data FROM event WHERE type = 'step.log_matched' AND subject = '{a['step']}'")
    assert '"line": 7' in data and '"text": "some line"' in data and a["attempt"] in data
    hand.finish(a)
    ended(admin, run, "succeeded")
    tell(hand, a, match(5, "label"), expect=409)


# ---- with the real worker -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def worker(server, admin):
    admin.post("/api/v1/projects", {"name": "policies"}, expect=201)
    with stack.Worker(server, "policies", join_token=stack.join_token(admin, pool="policies"), nvml_library="/nonexistent") as w:
        yield w


def real(admin, script, **keys):
    steps = {"a": {"run": ["/bin/sh", "-c", script], "placement": {"pool": "policies"}, **keys}}
    run = stack.submit(admin, "policies", stack.pipeline("p", steps))
    done = stack.wait_for_run(admin, run["id"])
    [s] = stack.steps_of(admin, run["id"])
    return done, s, stack.attempts_of(admin, s["id"])


def test_out_of_memory_of_a_gpu_is_a_reason(admin, worker):
    script = ("echo start; echo 'warning: a' >&2; printf 'binary \\377\\000\\n'; printf 'step 1\\rstep 2\\n'; "
              "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB' >&2; exit 1")
    done, s, attempts = real(admin, script, retries={"user": 3},
                             logs={"policies": [{"match": "^step 2", "label": "two"}, {"match": "nothing"}]})
    assert (done["state"], done["reason"], len(attempts)) == ("failed", "cuda_oom", 1)
    assert "CUDA out of memory. Tried to allocate 20 GiB" in s["message"] and "not tried again: line" in s["message"]
    two, oom = attempts[0]["log_matches"]
    assert (two["label"], two["count"], two["text"]) == ("two", 1, "step 2")
    assert oom["label"] == "cuda-oom" and oom["action"] == "stop_retrying" and attempts[0]["exit_code"] == 1
    for m, text in ((two, "step%202"), (oom, "OutOfMemoryError")):  # the numbers are those of the log
        [line] = admin.get(f"/api/v1/steps/{s['id']}/log?grep={text}", expect=200).json()["lines"]
        assert line["line"] == m["line"] and line["time"][:19] == m["time"][:19]


def test_what_was_overcome_is_no_reason(admin, worker):
    script = "echo 'CUDA out of memory'; for i in $(seq 300); do echo $i; done; exit 3"
    done, s, [attempt] = real(admin, script)
    assert done["reason"] == "exit_code" and attempt["log_matches"][0]["label"] == "cuda-oom"
    assert s["message"] == "the command ended with exit code 3; cuda-oom in line 1 of its log: CUDA out of memory"
    done, s, [attempt] = real(admin, "echo 'CUDA out of memory'", logs={"defaults": False})
    assert done["state"] == "succeeded" and attempt["log_matches"] == []


def test_the_token_cannot_be_found_by_a_pattern(admin, worker):
    done, s, [attempt] = real(admin, "echo token $MLFLOW_TRACKING_TOKEN", logs={"policies": [{"match": "token .{9}", "label": "t"}]})
    [m] = attempt["log_matches"]
    assert done["state"] == "succeeded" and "****" in m["text"] and m["count"] == 1


def test_a_match_is_seen_while_the_command_runs_and_survives_the_worker(server, admin, worker, tmp_path):
    go = worker.dir / "go"
    steps = {"a": {"run": ["/bin/sh", "-c", f"echo epoch 10; while [ ! -e {go} ]; do sleep 0.05; done; echo epoch 20; echo epoch 30"],
                   "placement": {"pool": "policies"}, "logs": {"policies": [{"match": "epoch \\d+0", "action": "notify"}]}}}
    run = stack.submit(admin, "policies", stack.pipeline("p", steps))
    [s] = stack.steps_of(admin, run["id"])

    def counts():
        return [m["count"] for a in stack.attempts_of(admin, s["id"]) for m in a["log_matches"]]
    until(lambda: counts() == [1], 30)
    worker.kill()
    worker.start()
    go.write_text("")
    assert stack.wait_for_run(admin, run["id"])["state"] == "succeeded"
    assert counts() == [3]
    assert len(server.sql(f"SELECT 1 FROM event WHERE type = 'step.log_matched' AND subject = '{s['id']}'")) == 1
