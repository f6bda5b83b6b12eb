"""Who gets what: quotas of projects, what is granted before what is borrowed, and workers kept for steps that wait."""
import hashlib
from datetime import datetime, timezone

import pytest

from harness import until
from test_engine import Hand, ended, pipeline, run_of, step, steps_of, submit
from test_queue import gpus, why, why_until


@pytest.fixture
def project(admin, request):
    name = "k" + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    for n in (name, name + "-b"):
        admin.post("/api/v1/projects", {"name": n}, expect=201)
    return name


def now():
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def quota(api, project, **put):
    path = f"/api/v1/projects/{project}/quota"
    return (api.put(path, put, expect=200) if put else api.get(path, expect=200)).json()


def test_no_project_holds_more_than_its_quota(server, admin, project):
    assert quota(admin, project) == {"project": project, "weight": 1.0, "gpus": {"nominal": None, "borrow": 0, "used": 0},
                                     "steps": {"nominal": None, "borrow": 0, "used": 0}}
    quota(admin, project, gpus={"nominal": 2, "borrow": 1})
    hand = Hand(server, admin, f"w-{project}", pool=project, devices=gpus(project, 8))
    one = pipeline({"a": step(project, resources="{cpus: 0.1, gpus: 1}")})
    runs = [submit(admin, project, one) for _ in range(5)]
    first = hand.take(3)
    last = next(r for r in runs if r["id"] not in {a["run"] for a in first})
    w = why_until(admin, last, "quota")
    [b] = w["blockers"]
    assert b["message"] == f"asks for 1 GPU, and project {project} has 0 left of its quota of 3"
    assert (b["what"], b["need"], b["free"], b["most"], b["unsatisfiable"]) == (project, 1, 0, 3, False)
    assert not hand.sync().get("assign") and "start_now" not in w
    until(lambda: run_of(admin, last).get("blocked", {}).get("message") == f"project {project} is at its quota of 3 GPUs", 15)
    until(lambda: quota(admin, project)["gpus"] == {"nominal": 2, "borrow": 1, "used": 3}, 5)
    # Others are not held back by it; what ends makes room; a wider quota counts at once.
    other = submit(admin, project + "-b", one)
    assert hand.take()[0]["run"] == other["id"]
    hand.finish(first[0])
    [d] = hand.take()
    assert not hand.sync().get("assign")
    quota(admin, project, gpus={"nominal": 8})
    [e] = hand.take()
    quota(admin, project, steps={"nominal": 4}, weight=2.5)
    assert quota(admin, project)["gpus"]["nominal"] is None and quota(admin, project)["weight"] == 2.5
    more = submit(admin, project, pipeline({"a": step(project, resources="{cpus: 0.1}")}))
    w = why_until(admin, more, "quota")
    assert w["blockers"][0]["message"] == f"project {project} is at its quota of 4 running steps"
    for a in (*first[1:], d, e):
        hand.finish(a)
    wide = submit(admin, project, pipeline({"a": step(project, resources="{gpus: 4}")}))
    [m] = hand.take()
    assert m["run"] == more["id"] or m["run"] == wide["id"]
    hand.finish(m)
    [x] = hand.take()
    hand.finish(x)
    quota(admin, project, gpus={"nominal": 1, "borrow": 1})
    never = submit(admin, project, pipeline({"a": step(project, resources="{gpus: 4}")}))
    w = why_until(admin, never, "quota")
    assert w["unsatisfiable"] and w["blockers"][0]["message"] == f"asks for 4 GPUs, and the quota of project {project} is 2"
    told = server.sql(f"SELECT count(*) FROM event e JOIN project p ON p.id = e.project_id WHERE p.name = '{project}'"
                      " AND type = 'project.quota_changed'")
    assert told == ["4"]


def test_what_is_granted_goes_before_what_is_borrowed(server, admin, project):
    other = project + "-b"
    for p in (project, other):
        quota(admin, p, gpus={"nominal": 2, "borrow": 2})
    hand = Hand(server, admin, f"w-{project}", pool=project, devices=gpus(project, 4))
    urgent = pipeline({"a": f"{{run: [x], placement: {{pool: {project}, priority: 1000}}, resources: {{cpus: 0.1, gpus: 1}}}}"})
    admin.post(f"/api/v1/workers/w-{project}/drain", expect=200)
    greedy = [submit(admin, project, urgent) for _ in range(4)]
    modest = [submit(admin, other, pipeline({"a": step(project, resources="{cpus: 0.1, gpus: 1}")})) for _ in range(2)]
    until(lambda: why(admin, modest[1]).get("position"), 15)
    admin.post(f"/api/v1/workers/w-{project}/resume", expect=200)
    taken = hand.take(4)
    runs = {a["run"] for a in taken}
    assert {m["id"] for m in modest} < runs and len({g["id"] for g in greedy} & runs) == 2
    for a in taken:
        hand.finish(a)
    for a in hand.take(2):
        hand.finish(a)
    for r in (*greedy, *modest):
        ended(admin, r, "succeeded")


def test_a_worker_is_kept_for_who_waits_longest(server, admin, project):
    hand = Hand(server, admin, f"w-{project}", pool=project, cpus=8)

    def run_(cpus, **more):
        return submit(admin, project, pipeline({"a": step(project, resources=f"{{cpus: {cpus}, memory: 8MiB}}", **more)}))

    base = run_(5, time_limit="1h")
    [a] = hand.take()
    hand.report(a["attempt"], "running", started_at=now())
    wide = run_(8)
    why_until(admin, wide, "cpus")
    long, endless, short = run_(2, time_limit="3h"), run_(2), run_(2, time_limit="30m")
    [s] = hand.take()
    assert s["run"] == short["id"]
    assert not hand.sync().get("assign")
    # With the short one there, one core is left: nobody else fits. When it has ended, two would, and wait.
    hand.finish(s)
    w = why_until(admin, endless, "kept")
    [b] = w["blockers"]
    assert b["message"].startswith(f"w-{project} has room, which is kept until ") and b["until"] and b["what"] == steps_of(admin, wide)["a"]["id"]
    assert why_until(admin, long, "kept")["blockers"][0]["until"] == b["until"]
    # Until the attempt's start is known to the scheduler its hour counts from then on.
    until(lambda: why(admin, wide)["earliest_start"] == why(admin, endless)["blockers"][0]["until"], 30)
    assert not hand.sync().get("assign")
    hand.finish(a)
    [x] = hand.take()
    assert x["run"] == wide["id"]
    hand.finish(x)
    for y in hand.take(2):
        hand.finish(y)
    for r in (base, wide, long, endless, short):
        ended(admin, r, "succeeded")


@pytest.mark.parametrize("put, pointer", [
    ({"gpus": {"nominal": -1}}, "/gpus/nominal"), ({"gpus": {"borrow": 1}}, "/gpus/nominal"), ({"steps": {"nominal": 1, "borrow": -3}}, "/steps/borrow"),
    ({"weight": 0}, "/weight"), ({"weight": "x"}, "/weight"), ({"cpus": {"nominal": 1}}, "/cpus"), ({"gpus": {"nominal": 10**9}}, "/gpus/nominal"),
])
def test_a_quota_that_makes_no_sense_is_refused(admin, project, put, pointer):
    before = quota(admin, project)
    reply = admin.put(f"/api/v1/projects/{project}/quota", put)
    assert reply.status in (400, 422) and reply.json()["errors"][0]["pointer"] == pointer, reply
    assert quota(admin, project) == before


def test_quotas_are_for_administrators_to_set(server, admin, project):
    owner = server.person(f"o-{project}", project, "owner")
    assert owner.put(f"/api/v1/projects/{project}/quota", {}).status == 403
    assert owner.get("/api/v1/quotas").status == 403
    assert quota(owner, project)["project"] == project
    assert project in [q["project"] for q in admin.get("/api/v1/quotas?limit=500", expect=200).json()["items"]]
