"""What steps make of each other: values, conditions. Workers are real, commands run as processes."""
import pytest

from harness import Server
from stack import Worker, attempts_of, join_token, pipeline, raw_log, steps_of, submit, wait_for_run


@pytest.fixture(scope="module")
def server(postgres):
    with Server(postgres) as s:
        s.admin().post("/api/v1/projects", {"name": "demo"}, expect=201)
        yield s


@pytest.fixture(scope="module")
def api(server):
    client = server.admin()
    yield client
    client.close()


@pytest.fixture(scope="module")
def worker(server):
    with Worker(server, "w1", cpus=8, join_token=join_token(server.admin())) as w:
        yield w


def put(**files):
    """A command that writes these files to its output."""
    script = "; ".join(f"printf %s '{text}' > $TIDEMILL_OUTPUT/{name}" for name, text in files.items())
    return {"run": script, "outputs": {name: {"path": name, "kind": "value"} for name in files}}


def run_to_end(api, source, state="succeeded", **kw):
    run = wait_for_run(api, submit(api, "demo", source, **kw)["id"])
    assert run["state"] == state, (run, steps_of(api, run["id"]))
    return run, {s["name"]: s for s in steps_of(api, run["id"])}


def refused(api, source, field, words, **kw):
    e = api.post("/api/v1/projects/demo/runs", {"source": source, **kw}, expect=422).json()
    [at] = [x for x in e["errors"] if x["pointer"] == field]
    assert words in at["detail"], e


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
