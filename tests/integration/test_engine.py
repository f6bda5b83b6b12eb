"""The engine against a real server: runs, steps, attempts, fencing, retries, cancellation, groups, triggers, leadership.
The worker's side is spoken by the test itself, so that every order of events can be forced."""
import hashlib
import json
import subprocess
import threading
import time

import pytest

from harness import Server, advisory_lock, program, table_lock, until

MACHINE = {"boot_id": "boot-1", "release": "test", "runtimes": ["process"], "cpus": 8, "memory": 32 << 30, "disk_free": 1 << 40}


class Hand:
    """A worker whose every move the test decides."""

    def __init__(self, server, admin, name, **machine):
        join = admin.post("/api/v1/workers/join-tokens", {"pool": machine.pop("pool", "default")}, expect=201).json()["token"]
        reply = server.client(join).post("/api/v1/workers/enroll", {"name": name}, expect=201).json()
        self.id, self.machine = reply["worker_id"], {**MACHINE, **machine}
        self.api = server.client(reply["token"])
        self.held, self.fresh = {}, []

    def sync(self, wait=False):
        reply = self.api.post("/api/v1/workers/self/sync",
                              {**self.machine, "wait": wait, "attempts": list(self.held.values())}, expect=200).json()
        for a in reply.get("assign", []):
            self.held[a["attempt"]] = {"id": a["attempt"], "epoch": a["epoch"], "state": "preparing"}
            self.fresh.append(a)
        for gone in reply.get("forget", []):
            self.held.pop(gone, None)
        return reply

    def take(self, n=1):
        """Waits until n assignments have come and returns them."""
        until(lambda: self.sync() and len(self.fresh) >= n, 45)
        got, self.fresh = self.fresh[:n], self.fresh[n:]
        return got

    def report(self, attempt, state, **more):
        self.held[attempt].update(state=state, **more)
        return self.sync()

    def finish(self, a, state="succeeded", **more):
        """Agrees on an empty log and reports the end."""
        attempt = a["attempt"]
        self.api.post(f"/api/v1/workers/self/attempts/{attempt}/log/final",
                      {"epoch": a["epoch"], "length": 0, "digest": hashlib.sha256(b"").hexdigest()}, expect=200)
        self.held[attempt].update(state=state, **more)
        until(lambda: self.sync() and attempt not in self.held, 10)


def pipeline(steps, name="p", spec="", **keys):
    lines = "".join(f"    {k}: {v}\n" for k, v in steps.items())
    return f"apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {{name: {name}}}\nspec:\n{spec}  steps:\n{lines}"


@pytest.fixture
def project(admin, request):
    name = "t" + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    admin.post("/api/v1/projects", {"name": name}, expect=201)
    return name


@pytest.fixture
def hand(server, admin, project):
    """A worker in a pool of its own, so that tests do not take each other's steps."""
    return Hand(server, admin, f"w-{project}", pool=project)


def step(project, run='["true"]', **keys):
    more = "".join(f", {k}: {v}" for k, v in keys.items())
    return f"{{run: {run}, placement: {{pool: {project}}}{more}}}"


def submit(admin, project, source, **body):
    return admin.post(f"/api/v1/projects/{project}/runs", {"source": source, **body}, expect=201).json()


def run_of(admin, run):
    return admin.get(f"/api/v1/runs/{run['id']}", expect=200).json()


def steps_of(admin, run):
    return {s["name"]: s for s in admin.get(f"/api/v1/runs/{run['id']}/steps", expect=200).json()["items"]}


def ended(admin, run, state, seconds=15):
    until(lambda: run_of(admin, run)["state"] == state, seconds, message=lambda: str(run_of(admin, run)))
    return run_of(admin, run)


def test_a_run_is_queued_until_its_first_step_starts(server, admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project), "b": step(project, needs="[a]")}))
    assert run["state"] == "queued" and run["started_at"] is None
    [a] = hand.take()
    assert (run_of(admin, run)["state"], steps_of(admin, run)["a"]["state"]) == ("queued", "assigned")
    hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z")
    until(lambda: run_of(admin, run)["state"] == "running", 5)
    hand.finish(a)
    [b] = hand.take()
    assert run_of(admin, run)["state"] == "running"
    hand.finish(b)
    ended(admin, run, "succeeded")
    told = server.sql(f"SELECT type FROM event WHERE subject = '{run['id']}' ORDER BY id")
    assert told == ["run.created", "run.running", "run.succeeded"]


def test_an_attempt_that_never_started_leaves_its_run_queued(server, admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project, retries="{infra: 1}")}))
    [a] = hand.take()
    hand.finish(a, "failed", reason="staging_failed")
    [b] = hand.take()
    assert run_of(admin, run)["state"] == "queued"
    hand.finish(b, "failed", reason="staging_failed", message="no such file")
    done = ended(admin, run, "failed")
    assert (done["reason"], done["message"]) == ("staging_failed", "the step a failed: no such file")
    assert server.sql(f"SELECT type FROM event WHERE subject = '{run['id']}' ORDER BY id") == ["run.created", "run.failed"]


def test_steps_run_in_the_order_of_their_needs(admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project), "b": step(project, needs="[a]"), "c": step(project, needs="[a, b]")}))
    for name in "abc":
        [a] = hand.take()
        assert a["step_name"] == name
        hand.finish(a, exit_code=0, started_at="2026-01-01T00:00:00Z")
    done = ended(admin, run, "succeeded")
    assert done["started_at"] == "2026-01-01T00:00:00Z" and done["ended_at"]
    assert {s["state"] for s in steps_of(admin, run).values()} == {"succeeded"}


def test_assignment_has_all_that_the_step_says(admin, project, hand):
    source = pipeline({"a": step(project, run='["echo", "${inputs.who}", "$${HOME}"]', env='{X: "1 ${run.id}"}', time_limit="90s",
                                 outputs="{m: {path: model, kind: model}}", resources="{cpus: 0.5, memory: 64MiB}")},
                      spec="  inputs: {who: {type: string}}\n")
    run = submit(admin, project, source, inputs={"who": "Ann; rm -rf /"})
    [a] = hand.take()
    assert a["argv"] == ["echo", "Ann; rm -rf /", "${HOME}"]
    assert a["env"] == {"X": f"1 {run['id']}"}
    assert (a["cpus"], a["memory"], a["time_limit"]) == (0.5, 64 << 20, 90_000_000)
    assert a["outputs"] == [{"name": "m", "path": "model", "kind": "model"}]
    assert a["project"] == project and a["run"] == run["id"] and len(a["tracking_run"]) == 32
    hand.finish(a)


def test_an_image_is_resolved_once_for_the_whole_run(server, admin, project):
    hand = Hand(server, admin, f"w-{project}", pool=project, runtimes=["docker"])
    image, ref = "example.org/x:1", "example.org/x@sha256:" + "a" * 64
    keys = {"image": image, "runtimes": "[docker]"}
    source = pipeline({"a": step(project, retries="{infra: 1, backoff: {first: 1s}}", **keys), "b": step(project, needs="[a]", **keys),
                       "c": step(project, needs="[a]", image="example.org/y:1", runtimes="[docker]")})
    run = submit(admin, project, source)
    [a] = hand.take()
    assert a["image"] == image and "image_ref" not in a and "image_ref" not in steps_of(admin, run)["a"]
    hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z", runtime="docker",
                evidence={"image": image, "image_id": "sha256:1", "image_ref": ref})
    assert steps_of(admin, run)["a"]["image_ref"] == ref
    # The next attempt gets it, and cannot move it any more.
    hand.finish(a, "failed", reason="runtime_failed", evidence={"image": image, "image_ref": ref})
    [again] = hand.take()
    assert again["image_ref"] == ref
    other = "example.org/x@sha256:" + "b" * 64
    hand.finish(again, evidence={"image": image, "image_ref": other, "image_digest": "sha256:" + "b" * 64})
    got = {x["step_name"]: x for x in hand.take(2)}
    assert got["b"]["image_ref"] == ref and "image_ref" not in got["c"]
    for x in got.values():
        hand.finish(x)
    ended(admin, run, "succeeded")
    assert {n: s.get("image_ref") for n, s in steps_of(admin, run).items()} == {"a": ref, "b": ref, "c": None}
    # Another run resolves it anew.
    second = submit(admin, project, source)
    [a] = hand.take()
    assert "image_ref" not in a
    admin.post(f"/api/v1/runs/{second['id']}/cancel", expect=200)
    hand.finish(a, "cancelled", reason="cancelled")


def test_a_worker_cannot_choose_the_image_of_the_others(server, admin, project):
    """Only a digest of the repository that the attempt's own step names, or an image of no registry."""
    hand = Hand(server, admin, f"w-{project}", pool=project, runtimes=["docker"])
    a64, image, pinned = "a" * 64, "example.org/x:1", "example.org/z@sha256:" + "c" * 64
    refs = {"t1": (image, f"example.org/y@sha256:{a64}"), "t2": (image, f"evil.org/x@sha256:{a64}"), "t3": (image, "example.org/x:2"),
            "t4": (image, f"example.org/x@sha256:{a64[1:]}"), "t5": (image, "sha256:1"), "t6": ("example.org/y:1", f"example.org/y@sha256:{a64}"),
            "t7": (pinned, f"example.org/z@sha256:{a64}"), "t8": (image, f"example.org/x@sha256:{a64}@sha256:{a64}")}
    few = {"runtimes": "[docker]", "resources": "{cpus: 0.1}"}
    steps = {n: step(project, image=f'"{pinned if n == "t7" else image}"', **few) for n in refs}
    run = submit(admin, project, pipeline({**steps, "other": step(project, image="example.org/y:1", needs="[t6]", **few),
                                           "hub": step(project, image="busybox:1.36", **few)}))
    for a in hand.take(9):
        image, ref = refs.get(a["step_name"], ("busybox:1.36", f"docker.io/library/busybox@sha256:{a64}"))
        hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z", runtime="docker",
                    evidence={"image": image, "image_id": "sha256:1", "image_ref": ref})
        hand.finish(a, evidence={"image": image, "image_ref": ref})
    [last] = hand.take()
    assert last["step_name"] == "other" and "image_ref" not in last
    hand.finish(last)
    ended(admin, run, "succeeded")
    assert {n: s["image_ref"] for n, s in steps_of(admin, run).items() if "image_ref" in s} == {
        "hub": f"docker.io/library/busybox@sha256:{a64}"}


def test_words_that_no_worker_takes_are_refused_at_once(admin, project):
    bad = [("run", '["echo", "a\\x1b"]', {}), ("run", '["echo", "${inputs.w}"]', {"w": "\x1b[0m"}),
           ("run", '["echo", "${inputs.w}"]', {"w": "\x00"}), ("env", '["true"], env: {X: "${inputs.w}"}', {"w": "a\rb"}),
           ("run", '["' + "${inputs.w}" * 8 + '"]', {"w": "x" * 10000})]
    for field, run, inputs in bad:
        source = pipeline({"a": step(project, run=run)}, spec='  inputs: {w: {type: string, default: "w"}}\n')
        p = admin.post(f"/api/v1/projects/{project}/runs", {"source": source, "inputs": inputs}, expect=422).json()
        assert any("/" + field in e["pointer"] or "/w" in e["pointer"] for e in p["errors"]), p


@pytest.mark.parametrize("run, inputs, at", [
    ('"echo ${inputs.nope}"', {}, "run"), ('["echo", "${inputs.nope}"]', {}, "run/1"), ('["echo", 1]', {}, "run/1"), ('"  "', {}, "run"),
    ('"echo ${inputs.w}"', {"w": "\x1b"}, "run"), ('["echo", "${inputs.w}"]', {"w": "\x1b"}, "run/1"),
    ('["true"], env: {A: "b", X: "${inputs.nope}"}', {}, "env/X"), ('["true"], env: {A: "b", X: "${inputs.w}"}', {"w": "\x1b"}, "env/X")])
def test_the_pointer_is_one_of_what_was_written(admin, project, run, inputs, at):
    source = pipeline({"a": step(project, run=run)}, spec='  inputs: {w: {type: string, default: "w"}}\n')
    for path, body in (("runs", {"source": source, "inputs": inputs}), ("pipelines/p", {"source": source})):
        if inputs and path != "runs":
            continue  # known only when a run fills them in
        send = admin.post if path == "runs" else admin.put
        [error] = send(f"/api/v1/projects/{project}/{path}", body, expect=422).json()["errors"]
        assert (error["in"], error["pointer"]) == ("body", f"/source/spec/steps/a/{at}"), error


@pytest.mark.parametrize("count, words, variables, where, limit", [
    (1, 17, 0, "run", "65536"), (1, 0, 64, "env", "1048576"), (5, 0, 15, "env", "4194304"), (2, 2, 0, "run", "65536")])
def test_what_grows_when_it_is_filled_in_is_bounded(admin, project, count, words, variables, where, limit):
    """A few bytes that name a long input many times; a step that waits is checked as one that may start."""
    big = "${inputs.w}" * 15
    env = json.dumps({f"V{k}": big for k in range(variables)})
    steps = {f"s{i}": step(project, run=json.dumps(["echo"] + [big] * words * (i == count - 1)), env=env,
                           **({"needs": f"[s{i - 1}]"} if i else {})) for i in range(count)}
    source = pipeline(steps, spec='  inputs: {w: {type: string, default: "%s"}}\n' % ("x" * 4000))
    p = admin.post(f"/api/v1/projects/{project}/runs", {"source": source}, expect=422).json()
    [error] = p["errors"]
    assert (error["pointer"] + "/").startswith(f"/source/spec/steps/s{count - 1}/{where}/") and limit in error["detail"], p
    assert admin.get(f"/api/v1/projects/{project}/runs", expect=200).json()["items"] == []


def test_a_pipeline_that_its_own_end_could_not_read_is_refused(admin, project):
    """Default variables stand in every step: the stored file is longer than the one that was sent."""
    steps = {f"s{i}": "{run: [x]}" for i in range(900)}
    source = pipeline(steps, spec="  defaults: {env: %s}\n" % json.dumps({f"V{i}": "" for i in range(60)}))
    p = admin.post(f"/api/v1/projects/{project}/runs", {"source": source}, expect=422).json()
    assert "50000 values" in p["detail"]


def test_a_script_of_several_lines_reaches_the_worker_whole(admin, project, hand):
    script = "set -e\n" + "echo a line of some length, to make it long\n" * 400 + "\techo ok\n"
    submit(admin, project, pipeline({"a": step(project, run=json.dumps(script))}))
    [a] = hand.take()
    assert a["argv"] == ["/bin/sh", "-c", script]
    hand.finish(a)


def test_failure_skips_what_needs_it_and_other_branches_run_on(admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project), "b": step(project, needs="[a]"), "c": step(project)}))
    for a in hand.take(2):
        if a["step_name"] == "a":
            hand.finish(a, "failed", reason="exit_code", exit_code=3, message="exit code 3", started_at="2026-01-01T00:00:00Z")
        else:
            hand.finish(a)
    done = ended(admin, run, "failed")
    assert done["reason"] == "exit_code" and "a" in done["message"]
    states = {n: (s["state"], s.get("reason")) for n, s in steps_of(admin, run).items()}
    assert states == {"a": ("failed", "exit_code"), "b": ("skipped", "need_failed"), "c": ("succeeded", None)}
    attempt = admin.get(f"/api/v1/steps/{steps_of(admin, run)['a']['id']}/attempts", expect=200).json()["items"][0]
    assert attempt["exit_code"] == 3 and attempt["worker"] == f"w-{project}"


def test_user_retries_are_used_up_by_user_failures_only(admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project, retries="{user: 1, infra: 5}")}))
    [a] = hand.take()
    hand.finish(a, "failed", reason="staging_failed")
    [b] = hand.take()
    assert b["epoch"] > a["epoch"] and b["number"] == 2 and b["attempt"] != a["attempt"]
    hand.finish(b, "failed", reason="exit_code", exit_code=1, started_at="2026-01-01T00:00:00Z")
    [c] = hand.take()
    hand.finish(c, "failed", reason="exit_code", exit_code=1, started_at="2026-01-01T00:00:00Z")
    ended(admin, run, "failed", 20)
    assert steps_of(admin, run)["a"]["attempts"] == 3


def test_the_wait_before_another_attempt_is_as_written(server, admin, project, hand):
    none = submit(admin, project, pipeline({"a": step(project, retries="{user: 2, backoff: {first: 0s}}")}))
    for _ in range(3):
        t = time.monotonic()
        [a] = hand.take()
        hand.finish(a, "failed", reason="exit_code", exit_code=1, started_at="2026-01-01T00:00:00Z")
    assert time.monotonic() - t < 5
    assert ended(admin, none, "failed")["reason"] == "exit_code" and steps_of(admin, none)["a"]["attempts"] == 3
    long = submit(admin, project, pipeline({"a": step(project, retries="{user: 1, backoff: {first: 1d, factor: 1, max: 1d}}")}))
    [a] = hand.take()
    hand.finish(a, "failed", reason="exit_code", exit_code=1, started_at="2026-01-01T00:00:00Z")
    [wait] = until(lambda: server.sql(f"SELECT extract(epoch FROM not_before - now()) FROM queue WHERE run_id = '{long['id']}'"), 10)
    assert 0 < float(wait) <= 86400  # nothing by chance once in a thousand runs of a day in milliseconds
    admin.post(f"/api/v1/runs/{long['id']}/cancel", expect=200)
    ended(admin, long, "cancelled")


@pytest.mark.parametrize("retries,pointer", [("{backoff: {first: -1s}}", "first"), ("{backoff: {factor: 0.5}}", "factor"),
                                             ("{backoff: {max: 1y}}", "max"), ("{backoff: {frist: 1s}}", "frist"), ("{user: -1}", "user")])
def test_retries_that_make_no_sense_are_refused(admin, project, retries, pointer):
    refused = admin.post(f"/api/v1/projects/{project}/runs", {"source": pipeline({"a": step(project, retries=retries)})})
    assert refused.status == 422 and pointer in str(refused.json()), refused


def test_a_worker_that_fails_again_and_again_is_taken_last(server, admin, project):
    bad = Hand(server, admin, f"a-{project}", pool=project, cpus=1)
    good = Hand(server, admin, f"b-{project}", pool=project, cpus=1)

    def look(w):
        return admin.get(f"/api/v1/workers/{w.id}", expect=200).json()

    def one_for(w, other):
        """The next step goes to w, though both are idle."""
        run = submit(admin, project, pipeline({"a": step(project, resources="{cpus: 1}", retries="{infra: 0}")}))
        until(lambda: (w.sync(), other.sync()) and (w.fresh or other.fresh), 20)
        assert w.fresh and not other.fresh
        return run, w.take()[0]
    bad.sync(), good.sync()
    for n in range(3):  # by name or id one of them comes first; the other one is kept busy
        filler = submit(admin, project, pipeline({"a": step(project, resources="{cpus: 1}", retries="{infra: 0}")}))
        run = submit(admin, project, pipeline({"a": step(project, resources="{cpus: 1}", retries="{infra: 0}")}))
        until(lambda: (bad.sync(), good.sync()) and bad.fresh and good.fresh, 20)
        bad.finish(bad.take()[0], "failed", reason=["disk_full", "gpu_fault", "runtime_failed"][n])
        good.finish(good.take()[0])
        for r in (filler, run):
            until(lambda: run_of(admin, r)["state"] in ("failed", "succeeded"), 15)
    assert look(bad)["faults"] == 3 and look(bad)["fault_at"] and look(good)["faults"] == 0
    for _ in range(3):
        run, a = one_for(good, bad)
        good.finish(a, "failed", reason="staging_failed")  # not the worker's fault
        ended(admin, run, "failed")
    assert look(good)["faults"] == 0
    first = one_for(good, bad)
    second = submit(admin, project, pipeline({"a": step(project, resources="{cpus: 1}")}))  # only the other one is left
    [b] = bad.take()
    bad.finish(b)
    good.finish(first[1])
    ended(admin, second, "succeeded")
    assert look(bad)["faults"] == 0


def test_stale_epoch_changes_nothing(server, admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project)}))
    [a] = hand.take()
    path = f"/api/v1/workers/self/attempts/{a['attempt']}"
    wrong = hand.api.post(f"{path}/outputs", {"epoch": a["epoch"] + 1, "outputs": []})
    assert wrong.status == 409 and wrong.json()["code"] == "superseded"
    other = Hand(server, admin, f"other-{project}", pool=project)
    other.held[a["attempt"]] = {"id": a["attempt"], "epoch": a["epoch"], "state": "running"}
    reply = other.sync()
    assert [c["reason"] for c in reply["cancel"]] == ["superseded"]
    assert steps_of(admin, run)["a"]["state"] == "assigned"
    stolen = other.api.post(f"{path}/outputs", {"epoch": a["epoch"], "outputs": []})
    assert stolen.status == 409
    hand.finish(a)
    ended(admin, run, "succeeded")
    hand.held[a["attempt"]] = {"id": a["attempt"], "epoch": a["epoch"], "state": "failed", "reason": "exit_code"}
    assert hand.sync()["forget"] == [a["attempt"]]
    assert run_of(admin, run)["state"] == "succeeded"


def test_reports_may_come_twice_and_never_go_back(admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project)}))
    [a] = hand.take()
    for state in ("running", "running", "preparing", "finishing", "running"):
        hand.report(a["attempt"], state, started_at="2026-01-01T00:00:00Z")
    until(lambda: steps_of(admin, run)["a"]["state"] == "finishing", 5)
    hand.finish(a)
    ended(admin, run, "succeeded")


def test_success_needs_a_complete_log(admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project)}))
    [a] = hand.take()
    hand.report(a["attempt"], "succeeded", exit_code=0)
    assert a["attempt"] in hand.held and steps_of(admin, run)["a"]["state"] == "assigned"
    hand.finish(a)
    ended(admin, run, "succeeded")


def test_a_step_that_nobody_takes_in_time_fails_with_the_reason(server, admin, project, hand):
    run = submit(admin, project, pipeline({"a": step("nowhere-" + project, timeouts="{queue: 2s}"), "b": step(project, needs="[a]"),
                                           "c": step(project, timeouts="{queue: 1h}")}))
    hand.finish(hand.take()[0])
    done = ended(admin, run, "failed")
    assert done["reason"] == "queue_timeout" and done["message"].startswith("the step a failed: waited 2s in the queue, the limit of timeouts.queue"), done
    steps = steps_of(admin, run)
    assert {n: (s["state"], s.get("reason")) for n, s in steps.items()} == {
        "a": ("failed", "queue_timeout"), "b": ("skipped", "need_failed"), "c": ("succeeded", None)}
    assert server.sql(f"SELECT count(*) FROM queue WHERE run_id = '{run['id']}'") == ["0"]
    told = server.sql(f"SELECT type FROM event WHERE subject = '{steps['a']['id']}' AND type <> 'step.blocked' ORDER BY id")
    assert told == ["step.queued", "step.failed"]
    assert server.sql(f"SELECT status FROM tracking_run WHERE step_id = '{steps['a']['id']}'") == ["FAILED"]


def test_a_step_that_was_just_handed_out_is_not_cancelled_as_if_it_waited(server, admin, project, hand):
    source = pipeline({"a": step(project, resources="{cpus: 0.1}")})
    runs = []
    for _ in range(40):
        runs.append(submit(admin, project, source))
        admin.post(f"/api/v1/runs/{runs[-1]['id']}/cancel", expect=200)

    def all_ended():
        for asked in hand.sync().get("cancel", []):
            hand.finish({"attempt": asked["attempt"], "epoch": asked["epoch"]}, "cancelled", reason="cancelled")
        return all(run_of(admin, r)["state"] == "cancelled" for r in runs)

    until(all_ended, 30)
    open_ones = ("SELECT count(*) FROM attempt a JOIN step s ON s.id = a.step_id WHERE a.state IN ('assigned', 'preparing', 'running')"
                 f" AND s.state = 'cancelled' AND a.run_id IN ({', '.join(repr(r['id']) for r in runs)})")
    assert server.sql(open_ones) == ["0"]
    taken = server.sql("SELECT step_id FROM attempt LIMIT 1")[0]
    with pytest.raises(AssertionError, match="handed out"):
        server.sql(f"SELECT step_unqueue(ARRAY['{taken}'])")


def test_cancel_while_queued(admin, project):
    run = submit(admin, project, pipeline({"a": step(project, needs="[]"), "b": step(project, needs="[a]")}))
    for _ in range(2):
        admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    done = ended(admin, run, "cancelled")
    assert done["reason"] == "cancelled"
    assert {s["state"] for s in steps_of(admin, run).values()} == {"cancelled"}


def test_cancel_while_running_reaches_the_worker_and_frees_what_it_held(admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project, resources="{cpus: 8}")}))
    after = submit(admin, project, pipeline({"a": step(project, resources="{cpus: 8}")}))
    [a] = hand.take()
    hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z")
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    asked = until(lambda: hand.sync().get("cancel"), 5)
    assert asked == [{"attempt": a["attempt"], "epoch": a["epoch"], "reason": "cancelled"}]
    hand.held[a["attempt"]]["cancelling"] = True
    assert not hand.sync().get("cancel") and not hand.sync().get("assign")
    hand.finish(a, "cancelled", reason="cancelled", signal=15)
    ended(admin, run, "cancelled")
    [b] = hand.take()
    assert b["run"] == after["id"]
    hand.finish(b)


def test_a_cancelled_run_whose_worker_is_silent_is_not_written_again(server, admin, project, hand):
    """The sweep is seen to pass by what only it finds: runs that are cancelled behind everybody's back."""
    run = submit(admin, project, pipeline({"a": step(project), "b": step(project, needs="[a]")}))
    [a] = hand.take()
    hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z")
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    until(lambda: steps_of(admin, run)["b"]["state"] == "cancelled", 10)
    asked = f"SELECT count(*) FROM event WHERE type = 'attempt.cancel_requested' AND subject = '{a['attempt']}'"
    until(lambda: server.sql(asked) == ["1"], 10)
    version = run_of(admin, run)["version"]
    for _ in range(2):
        other = submit(admin, project, pipeline({"a": step(project, resources="{cpus: 8}")}))
        server.sql(f"UPDATE run SET cancel_requested_at = now() WHERE id = '{other['id']}'")
        ended(admin, other, "cancelled")
    assert run_of(admin, run)["version"] == version
    assert server.sql(asked) == ["1"]
    hand.finish(a, "cancelled", reason="cancelled", signal=15)
    ended(admin, run, "cancelled")


def test_runs_that_their_group_holds_keep_no_other_from_the_sweep(server, admin, project, hand):
    """More of them than one sweep takes, and older than the run that is cancelled behind everybody's back."""
    source = pipeline({"a": step(project)}, spec="  concurrency: {group: g, policy: queue}\n")
    first, held = submit(admin, project, source), submit(admin, project, source)
    [a] = hand.take()
    server.sql("INSERT INTO run SELECT (jsonb_populate_record(r, jsonb_build_object('id', r.id || '-' || n))).*"
               f" FROM run r, generate_series(1, 1100) n WHERE r.id = '{held['id']}'")
    other = submit(admin, project, pipeline({"a": step(project, resources="{cpus: 8}")}))
    server.sql(f"UPDATE run SET cancel_requested_at = now() WHERE id = '{other['id']}'")
    ended(admin, other, "cancelled")
    server.sql(f"DELETE FROM run WHERE id LIKE '{held['id']}-%'")
    hand.finish(a)
    ended(admin, first, "succeeded")
    [b] = hand.take()
    hand.finish(b)
    ended(admin, held, "succeeded")


@pytest.mark.parametrize("state,more,run_state,step_state", [
    ("succeeded", {"exit_code": 0}, "succeeded", "succeeded"),
    ("failed", {"reason": "exit_code", "exit_code": 3}, "cancelled", "failed"),
    ("failed", {"reason": "staging_failed"}, "cancelled", "cancelled")])  # would have been tried again
def test_an_end_before_the_cancel_arrives_stands(admin, project, hand, state, more, run_state, step_state):
    run = submit(admin, project, pipeline({"a": step(project)}))
    [a] = hand.take()
    hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z")
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    hand.finish(a, state, **more)
    ended(admin, run, run_state)
    assert steps_of(admin, run)["a"]["state"] == step_state


def values(json_value):
    """How many values there are, as a reader of JSON counts them."""
    inner = json_value.values() if isinstance(json_value, dict) else json_value if isinstance(json_value, list) else ()
    return 1 + sum(values(v) for v in inner)


def data_of(server, admin, project, name, files):
    """A data set with so many files."""
    body = b"x"
    digest = hashlib.sha256(body).hexdigest()
    admin.put(f"/api/v1/projects/{project}/blobs/{digest}", body, expect=201)
    admin.post(f"/api/v1/projects/{project}/datasets", {"name": name}, expect=201)
    made = admin.post(f"/api/v1/projects/{project}/datasets/{name}/versions",
                      {"files": [{"path": "0", "digest": digest, "size": 1}], "latest": True}, expect=201).json()["id"]
    server.sql(f"INSERT INTO dataset_file (version_id, path, size, digest) SELECT '{made}', i::text, 1, '\\x{digest}' "
               f"FROM generate_series(1, {files - 1}) i; UPDATE dataset_version SET files = {files} WHERE id = '{made}'")


def test_a_reply_holds_no_more_than_a_worker_can_read(server, admin, project, hand):
    data_of(server, admin, project, "d", 4000)
    source = pipeline({"a": step(project)}, spec="  datasets: {in: {name: d}}\n")
    for _ in range(5):
        submit(admin, project, source)
    sizes = []

    def all_there():
        reply = hand.sync()
        sizes.append((values(reply), len(reply.get("assign", []))))
        return len(hand.fresh) == 5
    until(all_there, 45)
    assert max(n for n, _ in sizes) <= 50000 and max(k for _, k in sizes) > 1
    for a in hand.fresh:
        assert len(a["datasets"][0]["files"]) == 4000
        hand.finish(a)


def test_what_no_worker_can_be_given_fails_alone(server, admin, project, hand):
    bad = submit(admin, project, pipeline({"a": step(project, retries="{infra: 0}")}))
    server.sql(f"UPDATE step SET spec = jsonb_set(spec, '{{run}}', '7') WHERE run_id = '{bad['id']}'")
    good = submit(admin, project, pipeline({"a": step(project)}))
    [a] = hand.take()
    assert a["run"] == good["id"]
    hand.finish(a)
    ended(admin, good, "succeeded")
    until(lambda: hand.sync() and run_of(admin, bad)["state"] == "failed", 15)
    failed = run_of(admin, bad)
    assert failed["reason"] == "bad_assignment" and failed["message"], failed


def test_what_steps_need_by_default_they_need_whenever_they_are_queued(server, admin, project, hand):
    """At once, after another, by a condition, as a combination, and again."""
    asked = "SELECT q.cpus, q.memory, q.gpus FROM queue q JOIN step s ON s.id = q.step_id WHERE s.run_id = '{}' AND s.name = '{}'"
    run = submit(admin, project, pipeline({
        "a": step(project, resources="{cpus: 0.5, memory: 16MiB}"), "plain": step(project), "after": step(project, needs="[a]"),
        "given": step(project, **{"if": "'true'"}), "each": step(project, matrix="{values: {x: [1]}}")},
        spec="  defaults: {resources: {cpus: 1.5, memory: 32MiB, gpus: 3}}\n"))
    [a] = hand.take()
    hand.finish(a)
    for name in "plain", "after", "given", "each.x-1":
        assert until(lambda: server.sql(asked.format(run["id"], name)), 15, 0.05, name) == [f"1.5|{32 << 20}|3"]
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    again = submit(admin, project, pipeline({"a": step(project, retries="{user: 1, backoff: {first: 0s}}")}, spec="  defaults: {resources: {cpus: 1.5, memory: 32MiB}}\n"))
    [a] = hand.take()
    hand.finish(a, "failed", reason="exit_code", exit_code=1)
    [a] = hand.take()
    assert (a["number"], a["cpus"], a["memory"]) == (2, 1.5, 32 << 20)
    hand.finish(a)
    ended(admin, again, "succeeded")


def test_cancel_at_the_moment_of_the_assignment(server, admin, project, hand):
    """The assignment is written, but not yet committed, when the cancellation looks: the step is not cancelled behind it."""
    server.sql("""
        CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM set_config('lock_timeout', '0', true); PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END $$;
        CREATE TRIGGER slowly BEFORE INSERT ON attempt FOR EACH ROW EXECUTE FUNCTION slowly()""")
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND (wait_event = 'advisory') = {}"
    try:
        with advisory_lock(server.database, 4711):
            run = submit(admin, project, pipeline({"a": step(project)}))
            hand.sync()
            until(lambda: server.sql(waits.format(True)) != ["0"], 20)
            admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
            until(lambda: server.sql(waits.format(False)) != ["0"], 10)  # the cancellation, for the assignment
    finally:
        server.sql("DROP TRIGGER slowly ON attempt; DROP FUNCTION slowly")
    until(lambda: hand.sync() and run_of(admin, run)["state"] == "cancelled", 15)
    states = f"SELECT a.state FROM attempt a WHERE run_id = '{run['id']}' AND state NOT IN ('cancelled', 'failed', 'lost')"
    assert server.sql(states) == []


def test_cancel_before_the_worker_has_heard(server, admin, project, hand):
    hand.sync()
    run = submit(admin, project, pipeline({"a": step(project)}))
    until(lambda: steps_of(admin, run)["a"]["state"] == "assigned", 5)
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    until(lambda: server.sql(f"SELECT count(*) FROM attempt WHERE run_id = '{run['id']}' AND cancel_requested_at IS NOT NULL") == ["1"], 5)
    until(lambda: "cancel" not in hand.sync() and run_of(admin, run)["state"] == "cancelled", 10)
    assert not hand.held


def test_parked_sync_is_a_push(admin, project, hand):
    hand.sync()
    got = {}
    waiter = threading.Thread(target=lambda: got.update(hand.sync(wait=True)))
    waiter.start()
    submit(admin, project, pipeline({"a": step(project)}))
    waiter.join(10)
    assert [a["step_name"] for a in got["assign"]] == ["a"]
    hand.finish(got["assign"][0])


def gauge(admin, name):
    [line] = [n for n in admin.get("/metrics", expect=200).body.decode().splitlines() if n.startswith(name + " ")]
    return float(line.split()[1])


def parked(admin):
    return gauge(admin, "tidemill_workers_parked")


def test_a_second_parked_request_takes_the_place_of_the_first(server, admin, project, hand):
    hand.sync()
    until(lambda: parked(admin) == 0)
    first, second = {}, {}
    older = threading.Thread(target=lambda: first.update(hand.sync(wait=True)))
    older.start()
    until(lambda: parked(admin) == 1)
    twin = Hand.__new__(Hand)
    twin.__dict__.update(hand.__dict__, api=hand.api.with_token(hand.api.token))
    newer = threading.Thread(target=lambda: second.update(twin.sync(wait=True)))
    newer.start()
    older.join(10)
    assert not older.is_alive() and not first.get("assign")
    until(lambda: newer.is_alive() and parked(admin) == 1)
    submit(admin, project, pipeline({"a": step(project)}))
    newer.join(10)
    assert [a["step_name"] for a in second["assign"]] == ["a"]
    hand.finish(second["assign"][0])


@pytest.mark.parametrize("key, value", [("memory", 40 << 30), ("model", "NVIDIA A100"), ("driver", "550.1"), ("bus_id", "0:1"),
                                        ("mig", "1g.10gb"), ("health", "XID 79")])
def test_whatever_changes_of_a_device_is_stored(server, admin, project, key, value):
    device = {"uuid": f"GPU-{project}", "model": "NVIDIA H100 80GB HBM3", "memory": 80 << 30}
    hand = Hand(server, admin, f"i-{project}", pool=project, devices=[device])
    hand.sync()
    hand.machine["devices"] = [{**device, key: value}]
    hand.sync()
    [stored] = admin.get(f"/api/v1/workers/i-{project}", expect=200).json()["devices"]
    assert stored[key] == value


def test_no_worker_is_given_more_than_it_has(admin, project, hand):
    runs = [submit(admin, project, pipeline({"a": step(project, resources="{cpus: 3}")})) for _ in range(4)]
    first = hand.take(2)
    assert not hand.sync().get("assign") and len(hand.held) == 2
    for a in first:
        hand.finish(a)
    for a in hand.take(2):
        hand.finish(a)
    for run in runs:
        ended(admin, run, "succeeded")


def test_gpus_are_handed_out_by_uuid_and_once(server, admin, project):
    gpus = [{"uuid": f"GPU-{project}-{i}", "model": "NVIDIA H100 80GB HBM3", "memory": 80 << 30} for i in range(4)]
    gpus.append({"uuid": f"GPU-{project}-sick", "model": "NVIDIA H100 80GB HBM3", "memory": 80 << 30, "health": "XID 79"})
    hand = Hand(server, admin, f"g-{project}", pool=project, devices=gpus)
    source = pipeline({"a": step(project, resources='{cpus: 1, gpus: "H100:2"}')})
    runs = [submit(admin, project, source) for _ in range(3)]
    first = hand.take(2)
    used = [u for a in first for u in a["devices"]]
    assert len(used) == 4 and len(set(used)) == 4 and f"GPU-{project}-sick" not in used
    assert not hand.sync().get("assign")
    hand.finish(first[0])
    [third] = hand.take()
    assert sorted(third["devices"]) == sorted(first[0]["devices"])
    hand.finish(first[1])
    hand.finish(third)
    for run in runs:
        ended(admin, run, "succeeded")


def test_slices_are_for_those_who_ask_for_them(server, admin, project):
    whole = {"uuid": f"GPU-{project}", "model": "NVIDIA H200", "memory": 141 << 30}
    slices = [{"uuid": f"MIG-{project}-{i}", "model": "NVIDIA H200", "memory": 18 << 30, "mig": "1g.18gb"} for i in range(2)]
    hand = Hand(server, admin, f"g-{project}", pool=project, devices=[*slices, whole])
    for asked, got in (("1", [whole]), ('"H200:1"', [whole]), ('"1g.18gb:2"', slices), ("{count: 1, mig: any, model: [H200]}", slices[:1]),
                       ("{count: 1, mig: null}", [whole])):
        run = submit(admin, project, pipeline({"a": step(project, resources=f"{{cpus: 0.1, gpus: {asked}}}")}))
        [a] = hand.take()
        assert a["devices"] == [d["uuid"] for d in got], asked
        hand.finish(a)
        ended(admin, run, "succeeded")
    run = submit(admin, project, pipeline({"a": step(project, resources='{cpus: 0.1, gpus: "2g.35gb:1"}')}))
    why = until(lambda: (lambda b: b[0]["message"] if b and b[0]["kind"] == "gpus" else None)(
        admin.get(f"/api/v1/runs/{run['id']}/blockers", expect=200).json()["items"][0]["blockers"]), 15)
    assert why == f"no worker of pool {project} has a GPU (MIG slice 2g.35gb)"


@pytest.mark.parametrize("gpus, pointer, word", [
    ('"H100:x"', "", "number of GPUs"), ('"H100:0"', "", "at least 1"), ("65", "", "at most 64"), ("-1", "", "not be negative"), ("true", "", "must be as"),
    ("1.5", "", "must be as"), ("[1]", "", "must be as"), ('"24GB:1"', "", "write a range"), ("{count: 0}", "/count", "1"),
    ("{}", "/count", ""), ("{count: 1, model: ['?']}", "/model/0", "GPU model"), ("{count: 1, memory: 80GB..24GB}", "/memory", "ends before"),
    ("{count: 1, mig: big}", "/mig", "1g.18gb"), ("{count: 1, modell: [H100]}", "/modell", "model"),
])
@pytest.mark.parametrize("at", ["defaults", "steps/a"])
def test_gpus_that_make_no_sense_are_refused(admin, project, gpus, pointer, word, at):
    wrong = f"resources: {{gpus: {gpus}}}"
    source = pipeline({"a": "{run: [x]}"}, spec=f"  defaults: {{{wrong}}}\n") if at == "defaults" else pipeline({"a": f"{{run: [x], {wrong}}}"})
    reply = admin.post(f"/api/v1/projects/{project}/runs", {"source": source})
    assert reply.status == 422, reply
    [fault] = reply.json()["errors"]
    assert fault["pointer"].endswith(f"/spec/{at}/resources/gpus{pointer}") and word in fault["detail"], fault


def test_what_finds_a_worker_is_queued_and_assigned_by_one_commit(server, admin, project, hand):
    hand.sync()
    until(lambda: len(steps_of(admin, submit(admin, project, pipeline({"a": step(project)})))) == 1 and hand.take())
    run = submit(admin, project, pipeline({"a": step(project), "b": step(project)}))
    assert {a["run"] for a in hand.take(2)} == {run["id"]}
    told = server.sql("SELECT count(*), count(DISTINCT xid), string_agg(type, ' ' ORDER BY id) FROM event WHERE parent = '%s'"
                      " AND type IN ('step.queued', 'step.assigned')" % run["id"])
    assert told == ["4|1|step.queued step.queued step.assigned step.assigned"]
    assert server.sql("SELECT count(*) FROM queue WHERE run_id = '%s'" % run["id"]) == ["0"]


def test_launches_that_one_of_them_spoils_are_placed_all_the_same(server, admin, project, hand):
    """While a table is locked they gather to one batch, of which two want to be alone in one group."""
    hand.sync()
    alone = pipeline({"a": step(project)}, name="q", spec=f"  concurrency: {{group: g-{project}, policy: refuse}}\n")
    free, answers = pipeline({"a": step(project)}), []
    before = gauge(admin, "tidemill_http_connections")
    with table_lock(server, "run"):
        callers = [threading.Thread(target=lambda s=s: answers.append(server.client(server.token).post(
            f"/api/v1/projects/{project}/runs", {"source": s}).status)) for s in [free, alone, free, alone, free, free]]
        for c in callers:
            c.start()
        until(lambda: gauge(admin, "tidemill_http_connections") >= before + len(callers), 2)
    for c in callers:
        c.join(20)
    assert sorted(answers) == [201] * 5 + [409], answers
    assert len({a["run"] for a in hand.take(5)}) == 5


def test_a_launch_does_not_fail_with_the_placement_of_its_steps(server, admin, project, hand):
    """It was to be assigned by the same commit, and attempts could not be written just then."""
    hand.sync()
    with table_lock(server, "attempt"):
        run = submit(admin, project, pipeline({"a": step(project)}))
        assert steps_of(admin, run)["a"]["state"] == "queued"
    [a] = hand.take()
    hand.finish(a)
    ended(admin, run, "succeeded")


@pytest.mark.parametrize("policy", ["queue", "refuse", "cancel_running"])
def test_concurrency_groups(admin, project, hand, policy):
    source = pipeline({"a": step(project)}, spec=f"  concurrency: {{group: g, policy: {policy}}}\n")
    first = submit(admin, project, source)
    [a] = hand.take()
    if policy == "refuse":
        refused = admin.post(f"/api/v1/projects/{project}/runs", {"source": source})
        assert refused.status == 409 and "group" in refused.json()["detail"]
        hand.finish(a)
        ended(admin, first, "succeeded")
        submit(admin, project, source)
        hand.finish(hand.take()[0])
        return
    second = submit(admin, project, source)
    assert run_of(admin, second)["state"] == "queued"
    if policy == "cancel_running":
        until(lambda: hand.sync().get("cancel"), 10)
        hand.finish(a, "cancelled", reason="cancelled")
        ended(admin, first, "cancelled")
    else:
        assert not hand.sync().get("assign")
        hand.finish(a)
        ended(admin, first, "succeeded")
    [b] = hand.take()
    assert b["run"] == second["id"]
    hand.finish(b)
    ended(admin, second, "succeeded")


def at_once(admin, project, source, n=12):
    """n submissions that share their commits; the replies."""
    start, replies = threading.Barrier(n), []

    def go():
        client = admin.with_token(admin.token)
        start.wait()
        replies.append(client.post(f"/api/v1/projects/{project}/runs", {"source": source}))
        client.close()
    threads = [threading.Thread(target=go) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return replies


@pytest.mark.parametrize("number", range(4))
def test_of_many_at_once_a_group_that_refuses_takes_one(admin, project, number):
    source = pipeline({"a": step(project)}, spec=f"  concurrency: {{group: g{number}, policy: refuse}}\n")
    assert sorted(r.status for r in at_once(admin, project, source)) == [201] + 11 * [409]


@pytest.mark.parametrize("number", range(4))
def test_of_many_at_once_a_group_that_cancels_keeps_one(server, admin, project, number):
    source = pipeline({"a": step(project)}, spec=f"  concurrency: {{group: g{number}, policy: cancel_running}}\n")
    assert all(r.status == 201 for r in at_once(admin, project, source))
    runs = f"FROM run WHERE concurrency_group = 'g{number}' AND project_id = (SELECT id FROM project WHERE name = '{project}')"
    until(lambda: server.sql(f"SELECT count(*) {runs} AND state = 'cancelled'") == ["11"], 20)
    assert server.sql(f"SELECT count(*) {runs} AND cancel_requested_at IS NULL AND state = 'queued'") == ["1"]
    assert server.sql(f"SELECT count(*) FROM event WHERE type = 'run.cancel_requested' AND subject IN (SELECT id {runs})") == ["11"]


def test_a_run_that_was_begun_earlier_and_written_later_waits_for_its_group(server, admin, project, hand):
    """A file that is read from git for long: the run's identity is older than that of the run that is under way."""
    def concurrent(name, group):
        return pipeline({"a": step(project)}, name=name, spec=f"  concurrency: {{group: {group}, policy: queue}}\n")
    first, free = submit(admin, project, concurrent("p", "g")), submit(admin, project, concurrent("p", "free"))
    [a, b] = sorted(hand.take(2), key=lambda x: x["run"] != first["id"])
    hand.finish(b)
    ended(admin, free, "succeeded")
    for ident, like, group in (("run_00000000000000000000000001", first, "g"), ("run_00000000000000000000000002", free, "free")):
        server.sql(f"""
            INSERT INTO run SELECT (jsonb_populate_record(r, '{{"id": "{ident}", "state": "queued", "admitted_at": null, "version": 1,
                "started_at": null, "ended_at": null}}')).* FROM run r WHERE id = '{like['id']}';
            INSERT INTO step SELECT (jsonb_populate_record(s, '{{"id": "st_{ident[4:]}", "run_id": "{ident}", "state": "waiting",
                "tracking_run": null, "attempts": 0, "started_at": null, "ended_at": null, "version": 1}}')).*
                FROM step s WHERE run_id = '{like['id']}'""")
    # The look that lets the one in has seen the other.
    [c] = hand.take()
    assert c["run"].endswith("2")
    assert server.sql("SELECT admitted_at IS NULL FROM run WHERE id = 'run_00000000000000000000000001'") == ["t"]
    hand.finish(a)
    ended(admin, first, "succeeded")
    [d] = hand.take()
    assert d["run"].endswith("1")
    hand.finish(c)
    hand.finish(d)


def test_idempotency_key_makes_one_run(admin, project):
    source, key = pipeline({"a": step(project)}), {"Idempotency-Key": f"k-{project}"}
    path = f"/api/v1/projects/{project}/runs"
    replies = [admin.post(path, {"source": source}, headers=key, expect=201) for _ in range(3)]
    assert len({r.json()["id"] for r in replies}) == 1
    assert [r.headers.get("Idempotency-Replayed") for r in replies] == [None, "true", "true"]
    other = admin.post(path, {"source": source, "labels": {"x": "y"}}, headers=key)
    assert other.status == 422
    assert len(admin.get(path, expect=200).json()["items"]) == 1
    for bad in ("", "x" * 256):
        assert admin.post(path, {"source": source}, headers={"Idempotency-Key": bad}).status in (400, 422)


def test_new_data_starts_many_large_pipelines(server, admin, project):
    text = pipeline({"a": step(project)}, name="NAME", spec="  triggers: [{dataset: {name: d}}]\n") + ("#" + "x" * 120 + "\n") * 8000
    for i in range(20):
        admin.put(f"/api/v1/projects/{project}/pipelines/p{i}", {"source": text.replace("NAME", f"p{i}")}, expect=200)
    data_of(server, admin, project, "d", 1)
    runs = f"SELECT count(*) FROM run WHERE trigger = 'dataset' AND project_id = (SELECT id FROM project WHERE name = '{project}')"
    until(lambda: server.sql(runs) == ["20"], 60)


def test_new_data_starts_the_pipelines_that_wait_for_it_once(server, admin, project, hand):
    source = pipeline({"a": step(project)}, name="score", spec="  triggers: [{dataset: {name: d}}]\n  datasets: {in: {name: d}}\n")
    admin.put(f"/api/v1/projects/{project}/pipelines/score", {"source": source}, expect=200)
    admin.post(f"/api/v1/projects/{project}/datasets", {"name": "d"}, expect=201)
    for i in range(2):
        body = b"row %d\n" % i
        digest = hashlib.sha256(body).hexdigest()
        admin.put(f"/api/v1/projects/{project}/blobs/{digest}", body, expect=201)
        version = admin.post(f"/api/v1/projects/{project}/datasets/d/versions",
                             {"files": [{"path": f"{i}.csv", "digest": digest, "size": len(body)}], **({"latest": True} if i else {})},
                             expect=201).json()
        [a] = hand.take()
        assert [f["path"] for f in a["datasets"][0]["files"]] == [f"{k}.csv" for k in range(i + 1)]
        file = a["datasets"][0]["files"][i]
        got = hand.api.get(f"/api/v1/workers/self/attempts/{a['attempt']}/blobs/{file['digest']}?epoch={a['epoch']}", expect=200)
        assert got.body == body
        run = admin.get(f"/api/v1/runs/{a['run']}", expect=200).json()
        assert run["trigger"] == "dataset" and run["trigger_key"] == version["id"]
        assert run["datasets"][0]["number"] == i + 1
        hand.finish(a)
    assert len(admin.get(f"/api/v1/projects/{project}/runs", expect=200).json()["items"]) == 2


def test_a_trigger_that_cannot_start_its_run_is_tried_less_and_less_and_says_why(server, admin, project):
    trigger = "  triggers: [{dataset: {name: d}}]\n"
    bad = pipeline({"a": step(project)}, name="stuck", spec=trigger + "  models: {m: {name: nobody, alias: champion}}\n")
    path = f"/api/v1/projects/{project}/pipelines/stuck"
    assert not admin.put(path, {"source": bad}, expect=200).json().get("owed")
    data_of(server, admin, project, "d", 1)
    mine = f"pipeline_id = (SELECT p.id FROM pipeline p JOIN project j ON j.id = p.project_id WHERE j.name = '{project}' AND p.name = 'stuck')"

    def owed(tries):
        [o] = admin.get(path, expect=200).json().get("owed") or [{}]
        return o if o.get("tries") == tries else None

    def told():
        return server.sql("SELECT data ->> 'error' FROM event e JOIN project p ON p.id = e.project_id"
                          f" WHERE p.name = '{project}' AND type = 'pipeline.trigger_failed' ORDER BY e.id")

    for n in range(1, 5):
        o = until(lambda: owed(n), 30)
        wait = float(server.sql(f"SELECT extract(epoch FROM try_at - now()) FROM trigger_due WHERE {mine}")[0])
        assert 5 * 2 ** (n - 1) < wait <= 10 * 2 ** (n - 1), n
        assert o["trigger"] == "dataset" and o["key"].startswith("dsv_") and "nobody" in o["error"]
        if n < 4:
            server.sql(f"UPDATE trigger_due SET try_at = now() WHERE {mine}")
    assert told() == [o["error"]]
    # What changes is tried at once.
    admin.put(path, {"source": pipeline({"a": step(project)}, name="stuck", spec=trigger)}, expect=200)
    [run] = until(lambda: admin.get(f"/api/v1/projects/{project}/runs", expect=200).json()["items"], 15)
    assert (run["trigger"], run["trigger_key"]) == ("dataset", o["key"])
    assert not admin.get(path, expect=200).json().get("owed")


def test_outputs_are_committed_and_reach_the_next_step(admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project, outputs="{o: {path: dir}}"), "b": step(project, needs="[a]")}))
    [a] = hand.take()
    path, body = f"/api/v1/workers/self/attempts/{a['attempt']}", b"\x00payload\xff"
    digest = hashlib.sha256(body).hexdigest()

    def commit(file, **more):
        return hand.api.post(f"{path}/outputs", {"epoch": a["epoch"], "outputs": [
            {"name": "o", "files": [{"path": file, "digest": digest, "size": len(body)}], **more}]})

    assert commit("dir/x").status == 422  # not uploaded
    assert hand.api.put(f"{path}/blobs/{'0' * 64}?epoch={a['epoch']}", body).status == 422
    hand.api.put(f"{path}/blobs/{digest}?epoch={a['epoch']}", body, expect=201)
    for bad in ("other/x", "dir/../x", "/dir/x", "dirx"):
        assert commit(bad).status == 422, bad
    assert commit("dir/x").status == 204
    assert commit("dir/x").status == 204
    twice = commit("dir/x", files=2 * [{"path": "dir/x", "digest": digest, "size": len(body)}])
    assert twice.status == 422, twice
    # Of another size, and of bytes that another project has sent: a digest alone opens nothing.
    other = b"of another project"
    theirs = hashlib.sha256(other).hexdigest()
    admin.post("/api/v1/projects", {"name": f"{project}-b"}, expect=201)
    admin.put(f"/api/v1/projects/{project}-b/blobs/{theirs}", other, expect=201)
    for file in ({"digest": digest, "size": 3}, {"digest": theirs, "size": len(other)}):
        p = commit("dir/x", files=[{"path": "dir/x", **file}])
        assert p.status == 422 and p.json()["errors"][0]["pointer"] == "/outputs", p
    hand.finish(a)
    [b] = hand.take()
    assert b["inputs"] == [{"name": "a", "ref": a["step"], "files": [{"path": "dir/x", "digest": digest, "size": len(body)}]}]
    got = hand.api.get(f"/api/v1/workers/self/attempts/{b['attempt']}/blobs/{digest}?epoch={b['epoch']}", expect=200)
    assert got.body == body
    other = hand.api.get(f"/api/v1/workers/self/attempts/{b['attempt']}/blobs/{'1' * 64}?epoch={b['epoch']}")
    assert other.status == 404
    mine = admin.get(f"/api/v1/steps/{a['step']}/outputs/o/dir/x", expect=200)
    assert mine.body == body
    hand.finish(b)
    assert steps_of(admin, run)["a"]["outputs"] == {"o": {"kind": "files", "path": "dir", "files": 1, "bytes": len(body)}}


def test_wait_answers_at_the_end_or_in_time(admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project)}))
    start = time.monotonic()
    early = admin.get(f"/api/v1/runs/{run['id']}?wait=1s", expect=200).json()
    assert early["state"] == "queued" and time.monotonic() - start >= 0.9
    [a] = hand.take()
    got = {}
    waiter = threading.Thread(target=lambda: got.update(admin.with_token(admin.token).get(f"/api/v1/runs/{run['id']}?wait=30s").json()))
    waiter.start()
    hand.finish(a)
    waiter.join(10)
    assert got["state"] == "succeeded"


def test_a_wait_whose_look_fails_leaves_nothing_behind(server, admin, project):
    run = submit(admin, project, pipeline({"a": step(project)}))
    server.sql("ALTER TABLE model RENAME TO model_away")
    try:
        admin.get(f"/api/v1/runs/{run['id']}?wait=9s", expect=500)
    finally:
        server.sql("ALTER TABLE model_away RENAME TO model")
    # While this one waits, whatever the first one had set would go off.
    assert admin.get(f"/api/v1/runs/{run['id']}?wait=1s", expect=200).json()["state"] == "queued"


@pytest.mark.parametrize("change, pointer", [
    ({"source": "apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {name: p}\nspec: {steps: {a: {run: [x], need: [b]}}}\n"}, "need"),
    ({"source": "apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {name: p}\nspec: {steps: {a: {run: [x], needs: [b]}}}\n"}, "needs"),
    ({"source": "apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {name: p}\nspec: {steps: {a: {run: [x], needs: [b]}, b: {run: [x], needs: [a]}}}\n"}, "needs"),
    ({"source": "apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {name: p}\nspec: {steps: {a: {run: ['${inputs.x}']}}}\n"}, "run"),
    ({"source": "apiVersion: tidemill/v2\nkind: Pipeline\nmetadata: {name: p}\nspec: {steps: {a: {run: [x]}}}\n"}, "apiVersion"),
    ({"source": "a: [b\n"}, ""),
    ({"pipeline": "nosuch"}, "pipeline"),
    ({}, "pipeline"),
    ({"source": pipeline({"a": "{run: [x]}"}), "inputs": {"zzz": 1}}, "zzz"),
    ({"source": pipeline({"a": "{run: [x]}"}, spec="  inputs: {n: {type: integer, max: 3}}\n"), "inputs": {"n": 4}}, "n"),
    ({"source": pipeline({"a": "{run: [x]}"}, spec="  inputs: {n: {type: date}}\n")}, "n"),
    ({"source": pipeline({"a": "{run: [x], env: {LD_PRELOAD: x}}"})}, "LD_PRELOAD"),
    ({"source": pipeline({"a": "{run: [x], outputs: {o: {path: ../x}}}"})}, "path"),
    ({"source": pipeline({"a": "{run: [x]}"}, spec="  datasets: {d: {name: nosuch}}\n")}, "datasets"),
    ({"source": pipeline({"a": "{run: [x]}"}, spec="  models: {m: {name: nosuch, alias: champion}}\n")}, "models"),
])
def test_a_users_mistake_is_named_and_makes_no_run(admin, project, change, pointer):
    reply = admin.post(f"/api/v1/projects/{project}/runs", change)
    problem = reply.json()
    assert reply.status in (400, 422), problem
    assert pointer in problem["errors"][0]["pointer"] if pointer else True, problem
    assert not admin.get(f"/api/v1/projects/{project}/runs", expect=200).json()["items"]


def test_a_silent_worker_loses_its_attempt_and_cannot_come_back(server, admin, project, hand):
    run = submit(admin, project, pipeline({"a": step(project, on_lost="{policy: keep, lost_after: 10s}")}))
    [a] = hand.take()
    hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z")
    other = Hand(server, admin, f"other-{project}", pool=project)
    until(lambda: any(x["reason"] == "worker_lost" for x in
                      admin.get(f"/api/v1/steps/{steps_of(admin, run)['a']['id']}/attempts").json()["items"] if "reason" in x), 30)
    assert server.sql(f"SELECT data ->> 'state' FROM event WHERE type = 'attempt.ended' AND subject = '{a['attempt']}'") == ["lost"]
    admin.post(f"/api/v1/workers/w-{project}/drain", expect=200)  # it may come back, but for nothing new
    [b] = other.take()
    assert b["epoch"] > a["epoch"]
    assert [c["reason"] for c in hand.sync()["cancel"]] == ["superseded"]
    hand.held[a["attempt"]].update(state="succeeded", cancelling=True)
    assert hand.sync()["forget"] == [a["attempt"]]
    assert steps_of(admin, run)["a"]["state"] == "assigned"
    other.finish(b)
    ended(admin, run, "succeeded")


def test_how_long_its_worker_may_be_silent_is_kept_with_the_attempt(server, admin, project):
    """Also of a step that an older server has queued, whose row does not say it."""
    policies = ["{policy: keep, lost_after: 40m}", "{policy: stop, self_stop_after: 90s}", "{policy: keep}"]
    steps = {f"{age}{i}": step(project, on_lost=p) for age in ("new", "old") for i, p in enumerate(policies)}
    run = submit(admin, project, pipeline(steps))
    old = ", ".join(f"'{s['id']}'" for name, s in steps_of(admin, run).items() if name.startswith("old"))
    assert len(server.sql(f"UPDATE queue SET request = request - 'lost_after' WHERE step_id IN ({old}) RETURNING 1")) == 3
    Hand(server, admin, f"late-{project}", pool=project).take(6)
    assert server.sql(f"SELECT s.name, a.lost_after FROM attempt a JOIN step s ON s.id = a.step_id WHERE a.run_id = '{run['id']}'"
                      " ORDER BY s.name") == [f"{age}{i}|{us}" for age in ("new", "old")
                                              for i, us in enumerate((2_400_000_000, 120_000_000, 1_800_000_000))]


def test_a_worker_hears_that_it_was_given_up_with_its_next_word(admin, project, hand):
    """Also while server and worker had found to agree a moment ago, and the worker has nothing new to say."""
    run = submit(admin, project, pipeline({"a": step(project, on_lost="{policy: keep, lost_after: 10s}", retries="{infra: 0}")}))
    [a] = hand.take()
    hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z")
    hand.sync()
    ended(admin, run, "failed", 30)
    assert [c["attempt"] for c in hand.sync()["cancel"]] == [a["attempt"]]


def test_a_worker_that_drains_gets_nothing_more(admin, project, hand):
    admin.post(f"/api/v1/workers/w-{project}/drain", expect=200)
    run = submit(admin, project, pipeline({"a": step(project)}))
    until(lambda: hand.sync()["drain"], 5)
    assert not hand.sync().get("assign")
    assert admin.delete(f"/api/v1/workers/w-{project}").status == 204
    until(lambda: hand.api.post("/api/v1/workers/self/sync", {**MACHINE}).status == 401, 10)
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)


def test_a_second_server_takes_over(postgres, project):
    with Server(postgres) as one:
        admin = one.admin()
        admin.post("/api/v1/projects", {"name": project}, expect=201)
        two = Server(postgres)
        two.__enter__()
        try:
            two.stop()
            two.database, two.token = one.database, one.token
            (two.dir / "data").mkdir(exist_ok=True)
            (two.dir / "data" / "secret.key").write_bytes((one.dir / "data" / "secret.key").read_bytes())
            two.start()
            hand = Hand(two, admin, f"w-{project}", pool=project)
            run = submit(admin, project, pipeline({"a": step(project), "b": step(project, needs="[a]")}))
            [a] = hand.take()  # led by one, asked by two
            one.kill()
            hand.finish(a)
            [b] = hand.take()
            hand.finish(b)
            there = two.client(admin.token)
            until(lambda: there.get(f"/api/v1/runs/{run['id']}").json()["state"] == "succeeded", 20)
        finally:
            two.__exit__(None)


def test_an_orderly_end_gives_up_the_lead(postgres):
    with Server(postgres) as server:
        until(lambda: server.sql("SELECT 1 FROM leader WHERE expires_at > clock_timestamp()"))
        server.stop()
        assert server.sql("SELECT expires_at <= clock_timestamp() FROM leader") == ["t"]


def test_an_orderly_end_answers_what_is_parked(postgres, project):
    with Server(postgres) as s:
        admin = s.admin()
        admin.post("/api/v1/projects", {"name": project}, expect=201)
        hands = [Hand(s, admin, f"w{i}", pool=project) for i in range(3)]
        run = submit(admin, project, pipeline({"a": step("elsewhere")}))
        replies = []
        waiters = [threading.Thread(target=lambda h=h: replies.append(h.sync(wait=True))) for h in hands]
        waiters.append(threading.Thread(target=lambda: replies.append(s.client(s.token).get(f"/api/v1/runs/{run['id']}?wait=30s", expect=200))))
        for w in waiters:
            w.start()
        until(lambda: s.sql("SELECT count(*) FROM worker_seen")[0] == "3", 10)
        s.stop()
        for w in waiters:
            w.join(10)
        assert len(replies) == 4


def test_a_server_of_the_last_release_leads_no_more(server, admin, project, hand):
    """Another one has brought the schema forward. It serves on, and starts no more."""
    def leading():
        return gauge(admin, "tidemill_scheduler_leading")

    until(leading, 10)
    server.sql("INSERT INTO schema_migration (version, name, checksum) SELECT max(version) + 1, 'later.sql', 'x' FROM schema_migration")
    try:
        until(lambda: not leading(), 10)
        until(lambda: "newer schema than this program knows" in server.log(), 10)
        # What was left of the lease does not keep the newer one waiting.
        assert server.sql("SELECT count(*) FROM leader WHERE expires_at > clock_timestamp()") == ["0"]
        run = submit(admin, project, pipeline({"a": step(project)}))
        refused = subprocess.run([str(program("tidemill-server")), "migrate"], env=server.env(), capture_output=True, text=True, timeout=60)
        assert refused.returncode != 0 and "this program knows only" in refused.stderr
        assert not leading() and run_of(admin, run)["state"] == "queued"
    finally:
        server.sql("DELETE FROM schema_migration WHERE name = 'later.sql'")
    until(leading, 10)
    [a] = hand.take()
    hand.finish(a)
    ended(admin, run, "succeeded")
