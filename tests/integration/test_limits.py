"""How long an attempt may take and what it may ask for, by the real worker and server, and how each limit is named."""
import pytest

import stack
from harness import program, until
from test_engine import pipeline, project, step  # noqa: F401


@pytest.fixture(scope="module")
def worker(server, admin, tmp_path_factory):
    use = tmp_path_factory.mktemp("nvml") / "use"
    use.write_text("0")
    admin.post("/api/v1/projects", {"name": "limits"}, expect=201)
    more = {"FAKE_NVML_GPUS": "2", "FAKE_NVML_USE": str(use)}
    library = program("libfake_nvml.so")
    with stack.Worker(server, "limits", more=more, join_token=stack.join_token(admin, pool="limits"), nvml_library=library) as w:
        w.use = use
        yield w


def submit(admin, script, **keys):
    steps = {"a": {"run": ["/bin/sh", "-c", script], "placement": {"pool": "limits"}, **keys}}
    return stack.submit(admin, "limits", stack.pipeline("p", steps))["id"]


def attempts(admin, run):
    return stack.attempts_of(admin, stack.steps_of(admin, run)[0]["id"])


def test_a_time_limit_is_named(admin, worker):
    run = submit(admin, "exec sleep 600", time_limit="1s")
    done = stack.wait_for_run(admin, run)
    assert (done["state"], done["reason"]) == ("failed", "timeout")
    assert done["message"] == "the step a failed: the command ran for 1s, the limit of timeouts.run"


def idle(action, after="1s"):
    return {"timeouts": {"gpu_idle": {"after": after, "action": action}}, "resources": {"gpus": 2}}


def test_gpus_that_are_not_used_stop_the_command(admin, worker):
    worker.use.write_text("4")
    run = submit(admin, "exec sleep 600", **idle("stop"))
    done = stack.wait_for_run(admin, run)
    assert (done["state"], done["reason"]) == ("failed", "gpu_idle")
    assert done["message"] == "the step a failed: its GPUs were used by 4 % at most for 1s, the limit of timeouts.gpu_idle"


def test_gpus_that_are_used_do_not(admin, worker):
    worker.use.write_text("5")
    go = worker.dir / "used"
    run = submit(admin, f"while [ ! -e {go} ]; do sleep 0.05; done", **idle("stop", "2s"))
    until(lambda: stack.steps_of(admin, run)[0]["state"] == "running", 30)
    other = submit(admin, "exec sleep 3")  # without GPUs: three seconds go by
    assert stack.wait_for_run(admin, other)["state"] == "succeeded"
    go.write_text("")
    assert stack.wait_for_run(admin, run)["state"] == "succeeded"


def test_a_warning_comes_once_and_again_after_use(server, admin, worker):
    worker.use.write_text("0")
    run = submit(admin, "exec sleep 600", **idle("warn"))
    [s] = stack.steps_of(admin, run)

    def told():
        return server.sql(f"SELECT data ->> 'message' FROM event WHERE type = 'step.warning' AND subject = '{s['id']}'")
    until(told, 30)
    [a] = attempts(admin, run)
    assert a["warning"] == "its GPUs were used by 0 % at most for 1s, the limit of timeouts.gpu_idle" == told()[0]
    for use in "0", "90":  # as idle as before for longer than the limit; then in use
        worker.use.write_text(use)
        stack.wait_for_run(admin, submit(admin, "exec sleep 2"))
        assert len(told()) == 1
    worker.use.write_text("2")
    until(lambda: len(told()) == 2, 30)
    assert "2 % at most" in told()[1]
    admin.post(f"/api/v1/runs/{run}/cancel", expect=200)
    assert stack.wait_for_run(admin, run)["state"] == "cancelled"


@pytest.mark.parametrize("keys,at,words", [
    ({"time_limit": "99999999999y"}, "time_limit", "at most 1000y"), ({"time_limit": "0s"}, "time_limit", "at least 1s"),
    ({"resources": "{memory: 100000000000000000000GiB}"}, "resources/memory", "at most 8"),
    ({"resources": "{memory: 20000PiB}"}, "resources/memory", "at most 8"), ({"resources": "{memory: 1}"}, "resources/memory", "at least 4 MiB"),
    ({"resources": "{gpus: -1}"}, "resources/gpus", "must not be negative"), ({"resources": "{gpus: 65}"}, "resources/gpus", "at most 64"),
    ({"timeouts": "{gpu_idle: {action: stop}}"}, "timeouts/gpu_idle/after", ""),
    ({"timeouts": "{gpu_idle: {after: 1m, action: kill}}"}, "timeouts/gpu_idle/action", "warn")])
def test_what_is_asked_for_has_limits_that_are_named(admin, project, keys, at, words):
    reply = admin.post(f"/api/v1/projects/{project}/runs", {"source": pipeline({"a": step(project, **keys)})})
    assert reply.status == 422, reply
    [fault] = reply.json()["errors"]
    assert fault["pointer"] == f"/source/spec/steps/a/{at}" and words in fault["detail"], fault
