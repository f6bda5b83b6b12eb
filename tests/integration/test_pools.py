"""Pools of workers as objects: what is set of them, who may, and what it means for steps."""
import hashlib

import pytest

from test_engine import Hand, ended, pipeline, step, submit
from test_queue import why_until

DEFAULT = {"policy": "auto", "sensitivity": ["public", "internal", "confidential"], "preemption": "none"}


@pytest.fixture
def project(admin, request):
    name = "o" + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    admin.post("/api/v1/projects", {"name": name}, expect=201)
    return name


def test_a_pool_is_there_with_its_workers_and_is_set(server, admin, project):
    path = f"/api/v1/pools/{project}"
    assert admin.get(path).status == 404 and admin.delete(path).status == 404
    Hand(server, admin, f"w-{project}", pool=project)
    reply = admin.get(path, expect=200)
    assert reply.json() == {"name": project, "workers": 1, "version": 0, **DEFAULT} and reply.headers["ETag"] == '"0"'
    one = admin.put(path, {"policy": "spread", "sensitivity": ["restricted", "public", "public"]}, expect=200, headers={"If-Match": '"0"'})
    assert one.json() == {"name": project, "workers": 1, "version": 1, "policy": "spread", "sensitivity": ["public", "restricted"],
                          "preemption": "none"} and one.headers["ETag"] == '"1"'
    for stale in ('"0"', '"7"'):
        assert admin.put(path, {}, headers={"If-Match": stale}).status == 412
    assert admin.put(path, {}, headers={"If-Match": "x"}).status == 412
    assert admin.put(path, {"preemption": "quota"}, expect=200).json() == {
        "name": project, "workers": 1, "version": 2, **DEFAULT, "preemption": "quota"}  # what is left out is as by default
    assert project in [p["name"] for p in admin.get("/api/v1/pools?limit=500", expect=200).json()["items"]]
    admin.delete(path, expect=204)
    assert admin.get(path, expect=200).json() == {"name": project, "workers": 1, "version": 0, **DEFAULT}
    told = server.sql(f"SELECT data ->> 'policy' FROM event WHERE type = 'pool.changed' AND subject = '{project}' ORDER BY id")
    assert told[:2] == ["spread", "auto"] and len(told) == 3
    # A pool may be set before its first worker comes.
    early = f"/api/v1/pools/{project}-early"
    assert admin.put(early, {}, expect=200, headers={"If-Match": '"0"'}).json()["workers"] == 0
    assert admin.put(f"/api/v1/pools/{project}-new", {}, headers={"If-Match": '"1"'}).status == 412
    admin.delete(early, expect=204)


@pytest.mark.parametrize("put, pointer", [
    ({"policy": "most"}, "/policy"), ({"preemption": "all"}, "/preemption"), ({"sensitivity": ["secret"]}, "/sensitivity/0"),
    ({"sensitivity": "public"}, "/sensitivity"), ({"weight": 1}, "/weight"),
])
def test_a_pool_that_makes_no_sense_is_refused(admin, project, put, pointer):
    reply = admin.put(f"/api/v1/pools/{project}", put)
    assert reply.status == 422 and reply.json()["errors"][0]["pointer"] == pointer, reply
    reply = admin.put("/api/v1/pools/Not%20A%20Name", {})
    assert reply.status == 422 and reply.json()["errors"][0]["pointer"] == "/pool", reply


def test_pools_are_for_administrators_to_set(server, admin, project):
    owner = server.person(f"o-{project}", project, "owner")
    assert owner.put(f"/api/v1/pools/{project}", {}).status == 403
    assert owner.delete(f"/api/v1/pools/{project}").status == 403
    owner.get("/api/v1/pools", expect=200)


def test_a_step_waits_for_a_pool_that_allows_its_sensitivity(server, admin, project):
    hand = Hand(server, admin, f"w-{project}", pool=project)
    hand.sync()
    secret = pipeline({"a": f"{{run: [x], placement: {{pool: {project}, sensitivity: restricted}}}}"})
    run = submit(admin, project, secret)
    w = why_until(admin, run, "sensitivity")
    assert w["unsatisfiable"] and w["blockers"][0]["message"] == f"pool {project} takes no steps that are restricted"
    assert w["blockers"][0]["what"] == "restricted" and not hand.sync().get("assign")
    admin.put(f"/api/v1/pools/{project}", {"sensitivity": ["restricted"]}, expect=200)  # counts at once
    [a] = hand.take()
    assert a["run"] == run["id"]
    hand.finish(a)
    ended(admin, run, "succeeded")
    plain = submit(admin, project, pipeline({"a": step(project)}))  # internal, where nothing else is said
    assert why_until(admin, plain, "sensitivity")["blockers"][0]["message"] == f"pool {project} takes no steps that are internal"
    admin.delete(f"/api/v1/pools/{project}", expect=204)
    hand.finish(hand.take()[0])
    bad = admin.post(f"/api/v1/projects/{project}/runs", {"source": secret.replace("restricted", "secret")})
    assert bad.status == 422 and "sensitivity" in bad.json()["errors"][0]["pointer"], bad
