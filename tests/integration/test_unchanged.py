"""What is put again as it stands is not a change: no version, no event."""
from concurrent.futures import ThreadPoolExecutor

from stack import pipeline
from world import World

YAML = {"Content-Type": "application/yaml"}


def events(server):
    return server.sql("SELECT type, count(*) FROM event WHERE type ~ '^(pipeline|monitor|project)[.]' GROUP BY 1 ORDER BY 1")


def test_what_is_put_again_keeps_its_version(server, api):
    world = World(server, "same", "model-s")
    base = world.base
    put = {"pipelines/p": lambda: api.put(f"{base}/pipelines/p", {"source": world.source}, expect=200).json(),
           "monitors/m": lambda: api.put(f"{base}/monitors/m", world.monitor_source.encode(), headers=YAML, expect=200).json()}
    for path, again in put.items():
        before, told = api.get(f"{base}/{path}", expect=200).json(), events(server)
        assert again()["version"] == before["version"], path
        assert events(server) == told, path
    told = events(server)
    changed = api.put(f"{base}/pipelines/p", {"source": pipeline("p", {"s": {"run": ["false"]}})}, expect=200).json()
    assert changed["version"] == 2
    changed = api.put(f"{base}/monitors/m", world.monitor_source.replace("min_samples: 2", "min_samples: 3").encode(),
                      headers=YAML, expect=200).json()
    assert changed["spec"]["min_samples"] == 3
    assert events(server) != told


def test_what_is_put_twice_at_once_is_made_once(server, api):
    """As when an answer was lost and the request is sent again: neither is a conflict."""
    world = World(server, "twice", "model-t")
    clients = [api.with_token(api.token) for _ in range(4)]
    with ThreadPoolExecutor(len(clients)) as pool:
        for k in range(10):
            text = world.monitor_source.replace("name: m,", f"name: m{k},").replace("name: m}", f"name: m{k}}}").encode()
            path = f"{world.base}/monitors/m{k}"
            made = list(pool.map(lambda c: c.put(path, text, headers=YAML, expect=200).json(), clients))
            assert len({m["created_at"] for m in made}) == 1 and {m["version"] for m in made} == {1}
    assert server.sql("SELECT count(*) FROM event WHERE type = 'monitor.created' AND project_id = (SELECT id FROM project"
                      " WHERE name = 'twice')") == ["11"]


def test_a_project_or_member_that_is_set_again_is_not_changed(server, api):
    api.post("/api/v1/projects", {"name": "again", "description": "d"}, expect=201)
    api.post("/api/v1/principals", {"name": "carol"}, expect=201)
    member = "/api/v1/projects/again/members/carol"
    api.put(member, {"role": "viewer"}, expect=200)
    told = events(server)
    for body in ({"description": "d"}, {}, {"retention": {}}):
        same = api.patch("/api/v1/projects/again", body, headers={"If-Match": '"1"'}, expect=200)
        assert same.json()["version"] == 1 and same.headers["ETag"] == '"1"'
    assert api.put(member, {"role": "viewer"}, expect=200).json() == {"principal": "carol", "role": "viewer"}
    assert events(server) == told
    changed = api.patch("/api/v1/projects/again", {"description": "e"}, headers={"If-Match": '"1"'}, expect=200).json()
    assert (changed["version"], changed["description"]) == (2, "e")
    assert api.patch("/api/v1/projects/again", {"description": "f"}, headers={"If-Match": '"1"'}).status == 412
    assert api.put(member, {"role": "ci"}, expect=200).json()["role"] == "ci"
    assert events(server) != told
