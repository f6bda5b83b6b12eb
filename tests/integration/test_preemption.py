"""Whose place a step takes: greater priorities, quotas that are claimed back, and what becomes of those that give way."""
import hashlib
import json

import pytest

from harness import until
from test_engine import Hand, ended, pipeline, run_of, steps_of, submit
from test_queue import gpus, why_until
from test_quotas import quota

NOW = "2026-01-01T00:00:00Z"


@pytest.fixture
def project(admin, request):
    name = "e" + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    for n in (name, name + "-b"):
        admin.post("/api/v1/projects", {"name": n}, expect=201)
    yield name
    admin.delete(f"/api/v1/pools/{name}")


def pool(admin, name, preemption):
    admin.put(f"/api/v1/pools/{name}", {"preemption": preemption}, expect=200)


def one(project, priority=0, n=1, more="", retries=""):
    place = f"placement: {{pool: {project}, priority: {priority}{more}}}"
    return pipeline({"a": f"{{run: [x], {place}, resources: {{cpus: 0.1, gpus: {n}}}{retries}}}"})


def running(hand, a):
    hand.report(a["attempt"], "running", started_at=NOW)
    return a


def attempts(admin, run):
    step = steps_of(admin, run)["a"]["id"]
    return admin.get(f"/api/v1/steps/{step}/attempts", expect=200).json()["items"]


def asked_to_end(hand, a):
    """The worker is told, once; returns the reason that it is given."""
    reply = until(lambda: next((c for c in hand.sync().get("cancel", []) if c["attempt"] == a["attempt"]), None), 15)
    hand.held[a["attempt"]]["cancelling"] = True
    return reply["reason"]


def gives_way(hand, a, state="failed", reason="preempted"):
    hand.held[a["attempt"]].update(cancelling=True)
    hand.finish(a, state=state, reason=reason)


def test_a_greater_priority_takes_the_place_of_a_smaller_one(server, admin, project):
    hand = Hand(server, admin, f"w-{project}", pool=project, devices=gpus(project, 2))
    low = [submit(admin, project, one(project)) for _ in range(2)]
    first = [running(hand, a) for a in hand.take(2)]
    urgent = submit(admin, project + "-b", one(project, 100))
    assert why_until(admin, urgent, "gpus") and not hand.sync().get("cancel")  # not where the pool does not say so
    pool(admin, project, "priority")
    victim = next(a for a in first if a["attempt"] in until(
        lambda: [c["attempt"] for c in hand.sync().get("cancel", [])], 15))
    assert asked_to_end(hand, victim) == "preempted"
    other = next(a for a in first if a is not victim)
    w = why_until(admin, urgent, "preempting")
    assert w["earliest_start"] and w["blockers"][0]["until"] == w["earliest_start"], w
    assert w["blockers"][0]["message"] == f"takes the place of 1 attempt on w-{project}, which is asked to end"
    # What is freed is not given to one who waits longer, nor to a greater priority that comes now.
    run = next(r for r in low if r["id"] == victim["run"])
    server.sql(f"UPDATE step SET checkpoint_attempt = 1, checkpoint_at = now() WHERE run_id = '{run['id']}'")
    more = submit(admin, project, one(project, 1000, more=", preemptible: false"))
    assert asked_to_end(hand, other) == "preempted"
    gives_way(hand, victim)
    [u] = hand.take()
    assert u["run"] == urgent["id"]
    # The one that gave way waits again, goes on from its checkpoint, and everybody says why.
    said = f"preempted by step a of project {project}-b (priority 100 > 0)"
    until(lambda: steps_of(admin, run)["a"]["state"] == "queued", 10)
    s = steps_of(admin, run)["a"]
    assert (s["reason"], s["message"]) == ("preempted", said)
    [t] = attempts(admin, run)
    assert (t["state"], t["reason"], t["message"]) == ("failed", "preempted", said)
    gives_way(hand, other)
    [m] = hand.take()
    assert m["run"] == more["id"]
    assert not hand.sync().get("cancel")  # nobody ends the urgent one, whose priority is greater
    told = server.sql("SELECT type, data ->> 'message' FROM event WHERE type IN ('attempt.preempted', 'step.preempting')"
                      f" AND subject IN ('{victim['attempt']}', '{steps_of(admin, urgent)['a']['id']}') ORDER BY type")
    assert told == [f"attempt.preempted|{said}", "step.preempting|"], told
    running(hand, u)
    hand.finish(u)
    ended(admin, urgent, "succeeded")
    again = hand.take()[0]
    hand.finish(again)
    hand.finish(m)
    last = hand.take()[0]
    hand.finish(last)
    both = {x["run"]: (x["number"], x["checkpoint_attempt"] == 1) for x in (again, last)}
    assert both[run["id"]] == (2, True) and all(number == 2 for number, _ in both.values()), both
    for r in low:
        ended(admin, r, "succeeded")


def test_nobody_is_ended_twice_for_the_same_step_nor_one_that_must_not_be(server, admin, project):
    pool(admin, project, "priority")
    hand = Hand(server, admin, f"w-{project}", pool=project, devices=gpus(project, 1))
    low = submit(admin, project, one(project))
    a = running(hand, hand.take()[0])
    high = submit(admin, project, one(project, 5))
    assert asked_to_end(hand, a) == "preempted"
    gives_way(hand, a, "cancelled", "cancelled")  # an older worker knows of no other reason
    [h] = hand.take()
    assert h["run"] == high["id"] and attempts(admin, low)[0]["reason"] == "preempted"
    # The urgent one is lost with its worker's memory, and the other comes in between.
    step = steps_of(admin, high)["a"]["id"]
    assert server.sql(f"SELECT preempted_by FROM step WHERE run_id = '{low['id']}'") == [f"{{{step}}}"]
    hand.finish(h, state="failed", reason="runtime_failed")
    admin.post(f"/api/v1/runs/{high['id']}/cancel")
    [b] = hand.take()
    assert b["run"] == low["id"] and b["number"] == 2
    hand.finish(running(hand, b))
    ended(admin, low, "succeeded")
    firm = submit(admin, project, one(project, more=", preemptible: false"))
    c = running(hand, hand.take()[0])
    late = submit(admin, project, one(project, 1000))
    assert why_until(admin, late, "gpus") and not hand.sync().get("cancel")
    hand.finish(c)
    ended(admin, firm, "succeeded")
    hand.finish(hand.take()[0])
    ended(admin, late, "succeeded")


def test_the_budget_of_preemptions_is_its_own(server, admin, project):
    pool(admin, project, "priority")
    hand = Hand(server, admin, f"w-{project}", pool=project, devices=gpus(project, 1))
    low = submit(admin, project, one(project, retries=", retries: {user: 0, infra: 0, preempted: 1}"))
    for number, state in ((1, "queued"), (2, "failed")):
        a = running(hand, hand.take()[0])
        assert a["run"] == low["id"] and a["number"] == number
        high = submit(admin, project, one(project, number))
        assert asked_to_end(hand, a) == "preempted"
        gives_way(hand, a)
        until(lambda: steps_of(admin, low)["a"]["state"] == state, 15)
        [h] = hand.take()
        assert h["run"] == high["id"]
        hand.finish(h)
        ended(admin, high, "succeeded")
    run = ended(admin, low, "failed")
    assert run["reason"] == "preempted" and "preempted by step a" in run["message"]


def test_what_is_granted_is_claimed_back_from_who_borrows(server, admin, project):
    other = project + "-b"
    quota(admin, project, gpus={"nominal": 2, "borrow": 2})
    quota(admin, other, gpus={"nominal": 2, "borrow": 2})
    pool(admin, project, "quota")
    hand = Hand(server, admin, f"w-{project}", pool=project, devices=gpus(project, 4))
    borrow = [submit(admin, project, one(project, 10)) for _ in range(4)]
    first = {a["run"]: running(hand, a) for a in hand.take(4)}
    claim = submit(admin, other, one(project, n=2))
    cancelled = until(lambda: (lambda c: c if len(c) == 2 else None)(hand.sync().get("cancel", [])), 15)
    assert {c["reason"] for c in cancelled} == {"preempted"}
    for a in [a for a in first.values() if a["attempt"] in [c["attempt"] for c in cancelled]]:
        gives_way(hand, a)
        said = attempts(admin, {"id": a["run"]})[0]["message"]
        assert said == f"preempted by step a of project {other} (its quota grants that, which was borrowed)"
        first.pop(a["run"])
    [c] = hand.take()
    assert c["run"] == claim["id"]
    more = submit(admin, other, one(project, 1000, n=1))  # it would borrow, too: nobody gives way
    assert why_until(admin, more, "gpus") and not hand.sync().get("cancel")
    for a in (*first.values(), c):
        hand.finish(a)
    for a in hand.take(3):
        hand.finish(a)
    for r in (*borrow, claim, more):
        ended(admin, r, "succeeded", 30)


def test_an_attempt_that_its_worker_has_not_heard_of_gives_way_at_once(server, admin, project):
    pool(admin, project, "priority")
    hand = Hand(server, admin, f"w-{project}", pool=project, devices=gpus(project, 1))
    hand.sync()
    low = submit(admin, project, one(project))
    until(lambda: steps_of(admin, low)["a"]["state"] == "assigned", 15)
    high = submit(admin, project, one(project, 1))
    until(lambda: server.sql(f"SELECT count(*) FROM attempt WHERE run_id = '{low['id']}' AND preempted_by IS NOT NULL") == ["1"], 15)
    [h] = hand.take()
    assert h["run"] == high["id"] and attempts(admin, low)[0]["reason"] == "preempted"
    hand.finish(h)
    hand.finish(hand.take()[0])
    ended(admin, low, "succeeded")


def test_a_run_that_is_cancelled_while_it_gives_way_is_cancelled(server, admin, project):
    pool(admin, project, "priority")
    hand = Hand(server, admin, f"w-{project}", pool=project, devices=gpus(project, 1))
    low = submit(admin, project, one(project))
    a = running(hand, hand.take()[0])
    submit(admin, project, one(project, 1))
    assert asked_to_end(hand, a) == "preempted"
    admin.post(f"/api/v1/runs/{low['id']}/cancel", expect=200)
    gives_way(hand, a)
    assert ended(admin, low, "cancelled")
    hand.finish(hand.take()[0])


def test_who_gave_way_once_is_spared_by_the_same_step_from_its_next_attempt_on(server, admin, project):
    pool(admin, project, "priority")
    hand = Hand(server, admin, f"w-{project}", pool=project, devices=gpus(project, 1))
    low = submit(admin, project, one(project))
    a = running(hand, hand.take()[0])
    high = submit(admin, project, one(project, 5, retries=", retries: {backoff: {first: 1s}}"))
    assert asked_to_end(hand, a) == "preempted"
    gives_way(hand, a)
    [h] = hand.take()
    hand.finish(h, state="failed", reason="runtime_failed")  # it will be tried again, in a second or two
    b = running(hand, hand.take()[0])
    assert (b["run"], b["number"]) == (low["id"], 2)
    assert why_until(admin, high, "gpus")
    lines = [json.loads(x) for x in admin.get("/api/v1/scheduler/snapshot", expect=200).body.splitlines()]
    steps = [x["id"] for x in lines if x["kind"] == "step"]
    [held] = [x for x in lines if x["kind"] == "running" and x["id"] == b["attempt"]]
    assert [steps[i] for i in held["spared"]] == [steps_of(admin, high)["a"]["id"]] and not held.get("fixed")
    assert not hand.sync().get("cancel")
    hand.finish(b)
    ended(admin, low, "succeeded")
    hand.finish(hand.take()[0])
    ended(admin, high, "succeeded")


def test_a_gang_gives_way_as_a_whole(server, admin, project):
    pool(admin, project, "priority")
    hands = [Hand(server, admin, f"w{i}-{project}", pool=project, devices=gpus(f"{project}-{i}", 1)) for i in range(3)]
    gang = submit(admin, project, one(project, more=", nodes: 2"))
    until(lambda: [h.sync() for h in hands] and sum(len(h.fresh) for h in hands) == 2, 30)
    held = {h.fresh[0]["rank"]: (h, h.fresh.pop()) for h in hands if h.fresh}
    [spare] = [h for h in hands if h not in [hand for hand, _ in held.values()]]
    for hand, a in held.values():
        running(hand, a)
    firm = submit(admin, project, one(project, more=", preemptible: false"))
    [f] = spare.take()
    assert f["run"] == firm["id"]
    urgent = submit(admin, project + "-b", one(project, 9))
    for hand, a in held.values():  # both ranks, although the room of one is enough
        assert asked_to_end(hand, a) == "preempted"
    assert why_until(admin, urgent, "preempting")["blockers"][0]["workers"] == 2
    first, second = held[0], held[1]
    gives_way(*first)
    assert run_of(admin, gang)["state"] == "running" and steps_of(admin, gang)["a"]["state"] != "queued"  # one of it is there yet
    gives_way(*second)
    said = f"preempted by step a of project {project}-b (priority 9 > 0)"
    until(lambda: steps_of(admin, gang)["a"]["state"] == "queued", 15)
    assert steps_of(admin, gang)["a"]["reason"] == "preempted"
    assert [(t["rank"], t["state"], t["reason"], t["message"]) for t in sorted(attempts(admin, gang), key=lambda t: t["rank"])] == [
        (r, "failed", "preempted", said) for r in range(2)]
    until(lambda: [h.sync() for h, _ in held.values()] and any(h.fresh and h.fresh[0]["run"] == urgent["id"] for h, _ in held.values()), 15)
    taken = {a["run"]: (h, a) for h in hands for a in h.fresh}
    assert gang["id"] not in taken  # it needs two, and one is left
    hand, u = taken[urgent["id"]]
    hand.fresh.clear()
    hand.finish(running(hand, u))
    ended(admin, urgent, "succeeded")
    for run in (gang, firm):
        admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)
