"""What goes takes with it all that belongs to it, and is told."""
import pytest

import world
from harness import Server
from stack import Wire

# What outlives a project: bytes until they are collected, names of metrics, workers, what was told.
KEPT = ("blob", "metric_key", "worker", "principal")


def rows(server):
    names = {n: k for n, k in world.tables(server).items() if n not in KEPT and not n.startswith("event ")}
    return {**names, "token": server.sql("SELECT count(*) FROM token WHERE kind = 'jb'")[0]}


def told(server, kind):
    return server.sql(f"SELECT count(*) FROM event WHERE type = '{kind}' AND actor IS NOT NULL")


@pytest.fixture(scope="module")
def server(postgres):
    with Server(postgres) as s:
        yield s


def test_a_project_goes_with_all_that_it_held(server):
    api = server.admin()
    before = rows(server)
    world.World(server, "gone", "m").work(Wire(server, "w"))
    made = {n for n, k in rows(server).items() if k != before[n]}
    assert {"observation", "drift_metric", "monitor_window", "step_output", "token", "artifact"} <= made, made
    tag = api.get("/api/v1/projects/gone", expect=200).headers["ETag"]
    api.patch("/api/v1/projects/gone", {"description": "soon"}, headers={"If-Match": tag}, expect=200)
    api.delete("/api/v1/projects/gone", headers={"If-Match": tag}, expect=412)
    tag = api.get("/api/v1/projects/gone", expect=200).headers["ETag"]
    api.delete("/api/v1/projects/gone", headers={"If-Match": tag}, expect=204)
    assert rows(server) == before
    assert told(server, "project.updated") == ["1"] and told(server, "project.deleted") == ["1"]


def test_monitors_and_models_that_go_are_told(server):
    api = server.admin()
    world.World(server, "half", "mm")
    windows = "SELECT count(*) FROM observation"
    assert server.sql(windows) != ["0"]
    api.delete("/api/v1/projects/half/monitors/m", expect=204)
    api.delete("/api/v1/projects/half/monitors/m", expect=404)
    assert server.sql(windows) == ["0"] and server.sql("SELECT count(*) FROM drift_metric") == ["0"]
    api.delete("/api/v1/projects/half/models/mm", expect=204)
    assert told(server, "monitor.deleted") == ["1"] and told(server, "model.deleted") == ["1"]
