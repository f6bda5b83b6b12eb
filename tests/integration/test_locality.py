"""Steps go where their image and data are, among workers that are equal otherwise; and what a real worker tells of that."""
import hashlib
import json
import subprocess

import pytest

import stack
from harness import SANITIZERS, program, until
from test_engine import Hand, pipeline, submit

GIB = 1 << 30


@pytest.fixture
def project(admin, request):
    name = "l" + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    admin.post("/api/v1/projects", {"name": name}, expect=201)
    return name


def image(project):
    return f"team/{project}:1"


def dataset(admin, project, name, body):
    digest = hashlib.sha256(body).hexdigest()
    admin.put(f"/api/v1/projects/{project}/blobs/{digest}", body, expect=201)
    admin.post(f"/api/v1/projects/{project}/datasets", {"name": name}, expect=201)
    return admin.post(f"/api/v1/projects/{project}/datasets/{name}/versions",
                      {"files": [{"path": "f", "digest": digest, "size": len(body)}]}, expect=201).json()["id"]


def hands_of(server, admin, project, n, cpus=(8, 8, 8)):
    hands = [Hand(server, admin, f"{project}-{i}", pool=project, runtimes=["docker"], cpus=cpus[i]) for i in range(n)]
    for hand in hands:
        hand.sync()
    return hands


def holds(hand, *items):
    """kind, name, GiB. Told once, as a worker does."""
    hand.machine["holds"] = {"items": [{"kind": k, "name": n, "bytes": int(size * GIB)} for k, n, size in items]}
    hand.sync()
    del hand.machine["holds"]


def one(project, n=1):
    return pipeline({f"s{i}": f"{{run: [x], image: '{image(project)}', runtimes: [docker], resources: {{cpus: 1}}, "
                        f"placement: {{pool: {project}}}}}" for i in range(n)},
                    spec="  datasets: {in: {name: d}}\n")


def where(hands, run):
    """Which of them was given the step; ends it."""
    [(i, a)] = until(lambda: [(i, a) for i, h in enumerate(hands) for a in h.sync() and h.fresh if a["run"] == run["id"]], 20)
    hands[i].fresh.clear()
    hands[i].finish(a)
    return i


def test_a_step_goes_to_who_needs_fetch_the_least(server, admin, project, tmp_path):
    version = dataset(admin, project, "d", b"x" * 100)
    hands = hands_of(server, admin, project, 3)
    holds(hands[1], ("image", image(project), 10), ("image", "team/other:1", 500))
    assert where(hands, submit(admin, project, one(project))) == 1
    holds(hands[2], ("image", image(project), 10), ("dataset", version, 2))
    for _ in range(3):
        assert where(hands, submit(admin, project, one(project))) == 2
    holds(hands[2], ("image", image(project), 10))
    holds(hands[0], ("dataset", version, 20))
    assert where(hands, submit(admin, project, one(project))) == 0
    hands[0].sync()  # which says nothing of it: as before
    assert where(hands, submit(admin, project, one(project))) == 0
    holds(hands[0])  # it holds nothing any more
    assert where(hands, submit(admin, project, one(project))) in (1, 2)
    holds(hands[2], ("image", image(project), 10), ("dataset", version, 2))
    shown = admin.get(f"/api/v1/workers/{project}-2", expect=200).json()["holds"]
    assert shown == [{"kind": "image", "name": image(project), "bytes": 10 * GIB}, {"kind": "dataset", "name": version, "bytes": 2 * GIB}]
    assert admin.get(f"/api/v1/workers/{project}-0", expect=200).json()["holds"] == []
    env = {"XDG_CONFIG_HOME": str(tmp_path), "TIDEMILL_SERVER": f"http://127.0.0.1:{server.port}", "TIDEMILL_TOKEN": server.token,
           **SANITIZERS}
    said = subprocess.run([program("tidemill"), "worker", "show", f"{project}-2"], env=env, text=True, capture_output=True, timeout=60)
    assert "1 image, 10 GiB" in said.stdout and "1 data set, 2 GiB" in said.stdout, said


def test_nobody_waits_for_it_and_the_record_says_what_was_held(server, admin, project):
    dataset(admin, project, "d", b"y" * 100)
    hands = hands_of(server, admin, project, 2, cpus=[8, 1])  # the second has room for one
    holds(hands[1], ("image", image(project), 10))
    run = submit(admin, project, one(project, 3))
    until(lambda: [h.sync() for h in hands] and sum(len(h.fresh) for h in hands) == 3, 20)
    assert [len(h.fresh) for h in hands] == [2, 1]
    waiting = submit(admin, project, pipeline({"a": f"{{run: [x], image: '{image(project)}', runtimes: [docker], placement: {{pool: {project}}}, "
                                                    "resources: {cpus: 7}}"}))


    def recorded():
        lines = [json.loads(x) for x in admin.get("/api/v1/scheduler/snapshot", expect=200).body.splitlines()]
        return [x for x in lines if x["kind"] == "good" and x["name"] == image(project)]
    [good] = until(recorded, 10)
    assert good["bytes"] == 10 * GIB and len(good["workers"]) == 1
    admin.post(f"/api/v1/runs/{waiting['id']}/cancel", expect=200)
    admin.post(f"/api/v1/runs/{run['id']}/cancel", expect=200)


@pytest.mark.parametrize("bad, pointer", [
    ({"items": [{"kind": "model", "name": "x", "bytes": 1}]}, "/holds/items/0/kind"),
    ({"items": [{"kind": "image", "name": "", "bytes": 1}]}, "/holds/items/0/name"),
    ({"items": [{"kind": "image", "name": "x", "bytes": -1}]}, "/holds/items/0/bytes"),
    ({"items": [{"kind": "image", "name": str(i), "bytes": 1} for i in range(129)]}, "/holds/items"), ({}, "/holds/items"),
])
def test_what_cannot_be_held_is_refused(server, admin, project, bad, pointer):
    [hand] = hands_of(server, admin, project, 1)
    reply = hand.api.post("/api/v1/workers/self/sync", {**hand.machine, "wait": False, "attempts": [], "holds": bad})
    assert reply.status == 422 and reply.json()["errors"][0]["pointer"] == pointer, reply


def test_a_worker_tells_which_data_it_has_staged(server, admin, project):
    version = dataset(admin, project, "d", b"z" * 5000)
    step = {"run": ["true"], "placement": {"pool": project}}
    text = stack.pipeline("p", {"a": step}, datasets={"in": {"name": "d"}})

    def told():
        return admin.get(f"/api/v1/workers/{project}-w", expect=200).json()["holds"]
    with stack.Worker(server, f"{project}-w", join_token=stack.join_token(admin, pool=project), nvml_library="/nonexistent") as w:
        assert told() == []
        assert stack.wait_for_run(admin, stack.submit(admin, project, text)["id"])["state"] == "succeeded"
        until(lambda: told() == [{"kind": "dataset", "name": version, "bytes": 5000}], 20, message=lambda: str(told()))
        w.stop()
        server.sql(f"DELETE FROM worker_holds WHERE worker_id = (SELECT id FROM worker WHERE name = '{project}-w')")
        w.start()  # it knows it from its work folder, and tells it when it starts
        until(lambda: told() == [{"kind": "dataset", "name": version, "bytes": 5000}], 20, message=lambda: str(told()))
        w.stop()
        for file in (w.dir / "work" / "cache").rglob(hashlib.sha256(b"z" * 5000).hexdigest()):
            file.unlink()  # the cache has made room
        w.start()
        until(lambda: told() == [], 20, message=lambda: str(told()))
