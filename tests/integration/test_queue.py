"""Why steps wait: each kind of blocker with its numbers, the queue and its order, what is noted without being asked for."""
import contextlib
import hashlib
import subprocess
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from harness import SANITIZERS, Server, open_transaction, program, table_lock, until
from test_engine import Hand, ended, pipeline, run_of, step, steps_of, submit

GIB = 1 << 30


@pytest.fixture
def project(admin, request):
    name = "q" + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    admin.post("/api/v1/projects", {"name": name}, expect=201)
    return name


def gpus(name, n, model="NVIDIA H100 80GB HBM3", sick=0):
    return [{"uuid": f"GPU-{name}-{i}", "model": model, "memory": 80 * GIB, **({"health": "XID 79"} if i < sick else {})} for i in range(n)]


def why(api, run, name="a"):
    return api.get(f"/api/v1/steps/{steps_of(api, run)[name]['id']}/blockers", expect=200).json()


def why_until(api, run, kind, name="a"):
    """The answer once its first blocker is of the kind."""
    return until(lambda: (lambda w: w if w["blockers"] and w["blockers"][0]["kind"] == kind else None)(why(api, run, name)), 15,
                 message=lambda: str(why(api, run, name)))


def told(server, step_id):
    return server.sql(f"SELECT data ->> 'kind', data ->> 'unsatisfiable' FROM event WHERE type = 'step.blocked'"
                      f" AND subject = '{step_id}' ORDER BY id")


def test_a_step_that_no_worker_can_run_says_so_everywhere(server, admin, project):
    hand = Hand(server, admin, f"cpu-{project}", pool=project)
    hand.sync()
    run = submit(admin, project, pipeline({"a": step(project, resources="{gpus: 4}"), "b": step(project, needs="[a]")}))
    assert run["state"] == "queued"
    w = why_until(admin, run, "gpus")
    [b] = w["blockers"]
    assert b["message"] == f"no worker of pool {project} has a GPU"
    assert (b["unsatisfiable"], b["need"], b["free"], b["most"], b["unit"], b["workers"]) == (True, 4, 0, 0, "gpus", 1)
    assert w["unsatisfiable"] and w["earliest_start"] is None and "start_now" not in w
    assert (w["state"], w["pool"], w["position"], w["of"], w["gpus"]) == ("queued", project, 1, 1, 4)
    noted = until(lambda: run_of(admin, run).get("blocked"), 15)
    assert (noted["kind"], noted["unsatisfiable"], noted["step"]) == ("gpus", True, "a") and noted["message"] == b["message"]
    steps = steps_of(admin, run)
    assert steps["a"]["blocked"]["message"] == b["message"] and steps["a"]["blocked"]["since"]
    assert steps["b"]["blocked"] == {"kind": "needs", "message": "waits for a", "unsatisfiable": False, "since": None}
    [other] = why(admin, run, "b")["blockers"]
    assert (other["kind"], other["steps"]) == ("needs", ["a"])
    assert other["message"] == f"waits for step a (queued: {b['message']})"
    listed = admin.get(f"/api/v1/projects/{project}/runs", expect=200).json()["items"]
    assert listed[0]["blocked"]["unsatisfiable"] and listed[0]["state"] == "queued"
    both = admin.get(f"/api/v1/runs/{run['id']}/blockers", expect=200).json()["items"]
    assert [(x["name"], x["blockers"][0]["kind"]) for x in both] == [("a", "gpus"), ("b", "needs")]
    assert told(server, steps["a"]["id"]) == ["gpus|true"]
    # It is not for ever: another worker comes.
    gpu = Hand(server, admin, f"gpu-{project}", pool=project, devices=gpus(project, 4))
    [a] = gpu.take()
    until(lambda: "blocked" not in steps_of(admin, run)["a"], 5)
    gpu.finish(a)
    hand.finish(hand.take()[0])
    done = ended(admin, run, "succeeded")
    assert "blocked" not in done
    assert why(admin, run)["blockers"] == []


def test_what_waits_for_others_has_numbers_a_place_and_a_way_out(server, admin, project):
    hand = Hand(server, admin, f"gpu-{project}", pool=project, devices=gpus(project, 8))
    first = submit(admin, project, pipeline({"a": step(project, resources="{gpus: 3, memory: 1GiB}", time_limit="1h")}))
    [a] = hand.take()
    now = datetime.now(timezone.utc)
    hand.report(a["attempt"], "running", started_at=now.isoformat().replace("+00:00", "Z"))
    second = submit(admin, project, pipeline({"a": step(project, resources="{gpus: 8}")}))
    why_until(admin, second, "gpus")
    third = submit(admin, project, pipeline({"a": f"{{run: [x], placement: {{pool: {project}, priority: 5}}, resources: {{gpus: 6, memory: 2GiB}}}}"}))
    w = why_until(admin, third, "gpus")
    assert (w["position"], w["of"], w["priority"]) == (1, 2, 5)
    w = until(lambda: (lambda x: x if x["position"] == 2 else None)(why(admin, second)), 10)
    [b] = w["blockers"]
    assert b["message"] == f"needs 8 GPUs on one worker; the largest free block is 5, on gpu-{project}"
    assert (b["need"], b["free"], b["most"], b["worker"], b["worker_id"]) == (8, 5, 8, f"gpu-{project}", hand.id)
    assert not b["unsatisfiable"] and not w["unsatisfiable"]
    # The worker is kept for the more urgent one, for an hour at least.
    assert w["start_now"]["message"].startswith(
        f"it would start at once on gpu-{project}, if it asked for 5 GPUs instead of 8 and it had a time limit of at most 3")
    gpu, limit = w["start_now"]["edits"]
    assert gpu == {"kind": "gpus", "from": 8, "to": 5} and limit["kind"] == "time_limit" and 3500 < limit["to"] / 1e6 < 3601
    assert why(admin, third)["start_now"]["edits"] == [{"kind": "gpus", "from": 6, "to": 5}]
    # The more urgent one takes six of them at the end of the hour and has no time limit itself.
    assert w["earliest_start"] is None
    start = until(lambda: why(admin, third)["earliest_start"], 30)  # the start of the attempt is read now and then
    at = datetime.fromisoformat(start.replace("Z", "+00:00"))
    until(lambda: abs(datetime.fromisoformat(why(admin, third)["earliest_start"].replace("Z", "+00:00")) - now - timedelta(hours=1))
          < timedelta(seconds=1), 40, message=f"{at} is not an hour after {now}")
    noted = until(lambda: run_of(admin, second).get("blocked"), 15)
    assert noted["message"] == f"needs 8 GPUs free on one worker of pool {project}" and not noted["unsatisfiable"]
    # What was noted is not noted again as work comes and goes.
    before = server.sql(f"SELECT xmin FROM queue WHERE run_id = '{second['id']}'")
    fourth = submit(admin, project, pipeline({"a": step(project, resources="{gpus: 1}")}))
    [d] = hand.take()
    until(lambda: why(admin, second)["blockers"][0]["free"] == 4, 10)
    hand.finish(d)
    until(lambda: why(admin, second)["blockers"][0]["free"] == 5, 10)
    assert server.sql(f"SELECT xmin FROM queue WHERE run_id = '{second['id']}'") == before
    assert told(server, steps_of(admin, second)["a"]["id"]) == ["gpus|false"]
    ended(admin, fourth, "succeeded")
    hand.finish(a)
    ended(admin, first, "succeeded")
    for _ in range(2):
        hand.finish(hand.take()[0])


def test_the_fleet_is_too_small_or_the_labels_are_wrong(server, admin, project):
    hand = Hand(server, admin, f"cpu-{project}", pool=project, memory=24 * GIB, cpus=4, devices=gpus(project, 8, "NVIDIA L4", sick=1))
    hand.sync()
    cases = {
        "memory": ("resources: {memory: 64GiB}", f"no worker of pool {project} has 64 GiB of memory; the largest has 24 GiB (cpu-{project})"),
        "cpus": ("resources: {cpus: 4.5}", f"no worker of pool {project} has 4.500 CPUs; the most is 4 (cpu-{project})"),
        "gpus": ('resources: {gpus: "L4:8"}', f"no worker of pool {project} has 8 GPUs (L4); the most is 7 (cpu-{project}, where 1 more is not well)"),
        "requires": ("placement: {pool: POOL, requires: {site: onprem}}", f"no worker of pool {project} has the label site=onprem"),
        "runtime": ("runtimes: [docker], image: \"x:1\"", f"no worker of pool {project} offers docker"),
        "pool": ("placement: {pool: nosuch}", "no worker belongs to pool nosuch"),
    }
    for kind, (keys, message) in cases.items():
        keys = keys.replace("POOL", project)
        place = "" if "placement" in keys else f", placement: {{pool: {project}}}"
        run = submit(admin, project, pipeline({"a": f"{{run: [x]{place}, {keys}}}"}))
        w = why_until(admin, run, kind)
        assert w["blockers"][0]["message"] == message and w["unsatisfiable"], w
        until(lambda r=run: run_of(admin, r).get("blocked", {}).get("unsatisfiable"), 15)
        admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    # A disk may be emptied.
    run = submit(admin, project, pipeline({"a": step(project, resources="{disk: 100TiB}")}))
    w = why_until(admin, run, "disk")
    assert not w["unsatisfiable"] and w["blockers"][0]["need"] == 100 << 40 and w["blockers"][0]["unit"] == "bytes"


def test_workers_that_are_drained_or_away(postgres, project):
    with Server(postgres, worker_offline_after="3s") as s:
        api = s.admin()
        api.post("/api/v1/projects", {"name": project}, expect=201)
        hand = Hand(s, api, "w", pool=project)
        hand.sync()
        api.post("/api/v1/workers/w/drain", expect=200)
        run = submit(api, project, pipeline({"a": step(project)}))
        until(lambda: hand.sync() and why(api, run)["blockers"][0]["kind"] == "draining", 15)
        w = why(api, run)
        assert w["blockers"][0]["message"] == f"no worker of pool {project} takes new work (1 drained)" and not w["unsatisfiable"]
        assert w["start_now"]["edits"] == [{"kind": "resume"}] and w["start_now"]["worker"] == "w"
        w = why_until(api, run, "offline")
        assert w["blockers"][0]["message"] == f"no worker of pool {project} is online (1 offline)"
        step_id = w["step_id"]
        until(lambda: told(s, step_id)[-1:] == ["offline|false"], 15)
        assert run_of(api, run)["blocked"]["kind"] == "offline"
        api.post("/api/v1/workers/w/resume", expect=200)
        hand.finish(hand.take()[0])
        ended(api, run, "succeeded")


def test_a_drained_worker_gets_nothing_however_soon(server, admin, project):
    """Steps that are queued in the same moment are placed from memory, which must know of the drain before it is answered."""
    hand = Hand(server, admin, f"d-{project}", pool=project)
    hand.sync()
    for _ in range(10):
        admin.post(f"/api/v1/workers/d-{project}/drain", expect=200)
        run = submit(admin, project, pipeline({"a": step(project)}))
        assert not hand.sync().get("assign")
        why_until(admin, run, "draining")
        admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=(200, 202))
        ended(admin, run, "cancelled")
        admin.post(f"/api/v1/workers/d-{project}/resume", expect=200)


def test_what_was_read_before_the_drain_does_not_undo_it(server, admin, project):
    """The scheduler reads the worker anew, and that takes until after the drain: what it has read is older."""
    hand = Hand(server, admin, f"r-{project}", pool=project)
    hand.sync()
    ended_first = submit(admin, project, pipeline({"a": step(project)}))
    hand.finish(hand.take()[0])  # so that the worker is known
    ended(admin, ended_first, "succeeded")
    waits = ("SELECT count(*) > 0 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND"
             " l.relation = 'worker_seen'::regclass AND a.query LIKE '%w.lost_at, s.seen_at%'")
    worker = f"SELECT id, state FROM worker WHERE name = 'r-{project}'"
    drain = threading.Thread(target=lambda: server.admin().post(f"/api/v1/workers/r-{project}/drain", expect=200))
    with contextlib.ExitStack() as stack:
        with open_transaction(server):
            server.sql(f"INSERT INTO event (type, subject, data) SELECT 'worker.updated', id, '{{}}' FROM worker WHERE name = 'r-{project}'")
            stack.enter_context(table_lock(server, "worker_seen", "ACCESS EXCLUSIVE"))  # of a later transaction than the event
        until(lambda: server.sql(waits) == ["t"], 5)
        drain.start()
        until(lambda: server.sql(worker)[0].endswith("|draining"), 5)
        run = submit(admin, project, pipeline({"a": step(project)}))
    drain.join(20)
    why_until(admin, run, "draining")
    assert server.sql(f"SELECT count(*) FROM attempt WHERE run_id = '{run['id']}'") == ["0"]
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=(200, 202))


def test_what_waits_for_a_turn_or_for_time(server, admin, project):
    hand = Hand(server, admin, f"w-{project}", pool=project)
    group = "  concurrency: {group: g, policy: queue}\n"
    first = submit(admin, project, pipeline({"a": step(project, retries="{infra: 3}")}, spec=group))
    second = submit(admin, project, pipeline({"a": step(project), "b": step(project, needs="[a]")}, spec=group))
    [b] = why(admin, second)["blockers"]
    assert (b["kind"], b["what"], b["run_id"]) == ("group", "g", first["id"])
    assert b["message"] == f"waits for its turn in the concurrency group g, which is held by {first['id']}"
    assert run_of(admin, second)["blocked"]["kind"] == "group"
    assert [x["kind"] for x in why(admin, second, "b")["blockers"]] == ["group", "needs"]
    [a] = hand.take()
    [b] = why(admin, first)["blockers"]
    assert (b["kind"], b["worker"], b["message"]) == (
        "preparing", f"w-{project}", f"w-{project} prepares it: its code and what it runs in") or b["kind"] == "placing"
    hand.report(a["attempt"], "preparing")
    until(lambda: why(admin, first)["blockers"][0]["kind"] == "preparing", 5)
    hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z")
    until(lambda: why(admin, first)["blockers"] == [], 5)
    # The delay is drawn from [0, 10 s): often enough it is seen.
    seen = None
    for _ in range(3):
        hand.finish(a, "failed", reason="staging_failed", started_at="2026-01-01T00:00:00Z")
        until(lambda: steps_of(admin, first)["a"]["state"] != "running", 5)
        w = why(admin, first)
        if w["blockers"] and w["blockers"][0]["kind"] == "backoff":
            seen = w["blockers"][0]
            assert seen["until"] and "attempt" in seen["message"] and seen["message"].endswith("failed: staging_failed")
            queue = admin.get(f"/api/v1/projects/{project}/queue", expect=200).json()["items"]
            assert [(x["run_id"], x["blockers"][0]["kind"]) for x in queue] == [(first["id"], "backoff")] or not queue
        [a] = hand.take()
        hand.report(a["attempt"], "running", started_at="2026-01-01T00:00:00Z")
    assert seen, "no delay was seen in three"
    hand.finish(a)
    ended(admin, first, "succeeded")
    hand.finish(hand.take()[0])
    hand.finish(hand.take()[0])


def test_the_queue_is_listed_in_the_order_of_turns(server, admin, project):
    other = project + "-other"
    admin.post("/api/v1/projects", {"name": other}, expect=201)
    runs = {}
    for name, priority, pool in (("low", -3, "x"), ("one", 0, "x"), ("two", 0, "x"), ("high", 7, "x"), ("apart", 0, "y")):
        place = f"{{pool: {pool}-{project}, priority: {priority}}}"
        runs[name] = submit(admin, project, pipeline({"a": f"{{run: [x], placement: {place}}}"}, name=name))
    hidden = submit(admin, other, pipeline({"a": f"{{run: [x], placement: {{pool: x-{project}, priority: 5}}}}"}))

    def listed(query=""):
        return admin.get(f"/api/v1/projects/{project}/queue{query}", expect=200).json()

    until(lambda: len(listed()["items"]) == 5 and why(admin, hidden).get("position"), 10)
    items = listed(f"?pool=x-{project}")["items"]
    # The other project's step counts for the places, and is not shown.
    assert [(x["pipeline"], x["position"], x["of"]) for x in items] == [("high", 1, 5), ("one", 3, 5), ("two", 4, 5), ("low", 5, 5)]
    assert {x["blockers"][0]["message"] for x in items} == {f"no worker belongs to pool x-{project}"}
    assert [x["pipeline"] for x in listed(f"?pool=y-{project}")["items"]] == ["apart"]
    got, cursor = [], ""
    while True:
        page = listed(f"?limit=2{cursor}")
        got += [x["pipeline"] for x in page["items"]]
        if "next_cursor" not in page:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert sorted(got) == sorted(runs) and [g for g in got if g != "apart"] == ["high", "one", "two", "low"]
    for r in runs.values():
        admin.post(f"/api/v1/runs/{r['id']}/cancel", expect=200)
    until(lambda: not listed()["items"], 10)


def test_the_reason_is_in_the_end_of_a_step_that_waited_too_long(server, admin, project):
    run = submit(admin, project, pipeline({"a": step(project, resources="{gpus: 1}", timeouts="{queue: 6s}")}))
    assert until(lambda: why(admin, run)["deadline"], 10)
    done = ended(admin, run, "failed", 20)
    assert done["reason"] == "queue_timeout"
    assert done["message"] == f"the step a failed: waited 6s in the queue, the limit of timeouts.queue: no worker belongs to pool {project}"


def test_a_server_that_does_not_lead_gives_the_same_answer(postgres, project):
    with Server(postgres) as one:
        api = one.admin()
        api.post("/api/v1/projects", {"name": project}, expect=201)
        two = Server(postgres)
        two.__enter__()
        try:
            two.stop()
            two.database, two.token = one.database, one.token
            (two.dir / "data" / "secret.key").write_bytes((one.dir / "data" / "secret.key").read_bytes())
            two.start()
            there = two.client(api.token)
            hand = Hand(two, api, "gpu-1", pool=project, devices=gpus("g", 2))
            busy = submit(api, project, pipeline({"a": step(project, resources="{gpus: 1}", time_limit="2h")}))
            [a] = hand.take()
            hand.report(a["attempt"], "running", started_at=datetime.now(timezone.utc).isoformat().replace("+00:00", "Z"))
            run = submit(api, project, pipeline({"a": step(project, resources="{gpus: 2}"), "b": step(project, resources="{gpus: 3}")}))
            until(lambda: one.client(api.token).get("/metrics").body.count(b"tidemill_scheduler_leading 1"), 10)
            assert there.get("/metrics").body.count(b"tidemill_scheduler_leading 0")

            def plain(w):
                return {k: v for k, v in w.items() if k not in ("as_of", "earliest_start", "start_now")}

            def same():
                here, far = why(api, run), why(there, run)
                return here["blockers"][0]["kind"] == "gpus" and plain(here) == plain(far) and here["earliest_start"][:18] == \
                    far["earliest_start"][:18]

            until(same, 30, message=lambda: f"{why(api, run)}\n{why(there, run)}")
            assert plain(why(api, run, "b")) == plain(why(there, run, "b")) and why(there, run, "b")["unsatisfiable"]
            assert [x["name"] for x in there.get(f"/api/v1/projects/{project}/queue", expect=200).json()["items"]] in (["a", "b"], ["b", "a"])
            # The other one takes over and notes nothing again.
            step_id = why(api, run, "b")["step_id"]
            until(lambda: told(one, step_id) == ["gpus|true"], 15)
            one.kill()
            until(lambda: there.get("/metrics").body.count(b"tidemill_scheduler_leading 1"), 20)
            hand.finish(a)
            [b] = hand.take()
            hand.finish(b)
            until(lambda: there.get(f"/api/v1/runs/{busy['id']}").json()["state"] == "succeeded", 20)
            assert told(one, step_id) == ["gpus|true"]
        finally:
            two.__exit__(None)


def test_many_ask_at_once(server, admin, project):
    run = submit(admin, project, pipeline({f"s{i}": step(f"{project}-{i % 7}", resources=f"{{cpus: {1 + i % 3}}}") for i in range(200)}))
    ids = [s["id"] for s in admin.get(f"/api/v1/runs/{run['id']}/steps?limit=500", expect=200).json()["items"]]
    until(lambda: len(admin.get(f"/api/v1/runs/{run['id']}/blockers?limit=500", expect=200).json()["items"]) == 200, 10)
    answers = []

    def ask(mine):
        api = admin.with_token(admin.token)
        for i in mine:
            answers.append(api.get(f"/api/v1/steps/{i}/blockers", expect=200).json())
        api.close()

    threads = [threading.Thread(target=ask, args=(ids[i::8],)) for i in range(8)]
    began = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert len(answers) == 200 and time.monotonic() - began < 60
    assert all(a["blockers"][0]["kind"] in ("pool", "new") for a in answers)
    until(lambda: server.sql(f"SELECT count(*) FROM queue WHERE run_id = '{run['id']}' AND blocked IS NULL") == ["0"], 15)
    assert server.sql(f"SELECT count(*) FROM event WHERE type = 'step.blocked' AND parent = '{run['id']}'") == ["200"]
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
    ended(admin, run, "cancelled")


def test_what_the_scheduler_saw_is_decided_again(server, admin, project, tmp_path):
    hand = Hand(server, admin, f"gpu-{project}", pool=project, devices=gpus(project, 4))
    busy = submit(admin, project, pipeline({"a": step(project, resources="{gpus: 3}", time_limit="2h", env="{SECRET: hunter2}")}))
    [a] = hand.take()
    run = submit(admin, project, pipeline({"a": step(project, resources="{gpus: 2}"), "b": step(project, resources="{gpus: 9}")}))
    why_until(admin, run, "gpus", "b")
    reply = admin.get("/api/v1/scheduler/snapshot", expect=200)
    assert reply.headers.get_content_type() == "application/x-ndjson" and b"hunter2" not in reply.body
    waiting = {n: s["id"] for n, s in steps_of(admin, run).items()}

    def replay(body, step_id, expect=0):
        path = tmp_path / "snapshot"
        path.write_bytes(body)
        done = subprocess.run([str(program("tidemill-server")), "replay", str(path), step_id], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, env=SANITIZERS)
        assert done.returncode == expect, (done.stdout, done.stderr)
        return done.stdout + done.stderr

    for body in (reply.body, server.command("snapshot").encode()):
        said = replay(body, waiting["b"])
        assert "the decision is the same\n" in said
        assert f"in vain: no worker of pool {project} has 9 GPUs; the most is 4 (gpu-{project})" in said, said
        assert "needs 2 GPUs on one worker; the largest free block is 1, on gpu-" + project in replay(body, waiting["a"])
    said = replay(reply.body.replace(b'"gpus":2,', b'"gpus":1,'), waiting["a"], expect=1)
    assert "the decision differs: placement 1 was none" in said or "the decision differs: placement" in said, said
    assert "the recorded decision is another one" in said
    assert "line 1: " in replay(b"no snapshot\n", "", expect=1)
    assert server.person(f"v-{project}", project, "owner").get("/api/v1/scheduler/snapshot").status == 403
    hand.finish(a)
    ended(admin, busy, "succeeded")
    hand.finish(hand.take()[0])
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
