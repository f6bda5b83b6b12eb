"""What goes takes with it all that belongs to it, and is told."""
import json

import world
from harness import until
from stack import Wire

# What outlives a project: bytes until they are collected, names of metrics, workers, what was told.
KEPT = ("blob", "metric_key", "worker", "principal")


def rows(server):
    names = {n: k for n, k in world.tables(server).items() if n not in KEPT and not n.startswith("event ")}
    return {**names, "token": server.sql("SELECT count(*) FROM token WHERE kind = 'jb'")[0]}


def told(server, kind):
    return server.sql(f"SELECT count(*) FROM event WHERE type = '{kind}' AND actor IS NOT NULL")


def test_a_project_goes_with_all_that_it_held(server):
    api = server.admin()
    before = rows(server)
    held = world.World(server, "gone", "m").work(Wire(server, "w"))
    stands = rows(server)
    made = {n for n, k in stands.items() if k != before[n]}
    assert {"observation", "drift_metric", "monitor_window", "step_output", "token", "artifact"} <= made, made
    held.wire.finish(held.job["attempt"], 1)
    until(lambda: api.get(f"/api/v1/runs/{held.run}", expect=200).json()["state"] == "failed", 20)
    tag = api.get("/api/v1/projects/gone", expect=200).headers["ETag"]
    api.patch("/api/v1/projects/gone", {"description": "soon"}, headers={"If-Match": tag}, expect=200)
    api.delete("/api/v1/projects/gone", headers={"If-Match": tag}, expect=412)
    content = api.delete("/api/v1/projects/gone?dry_run=true", expect=200).json()
    assert content.pop("dry_run") is True and content.pop("active_runs") == 0
    named = {"runs": "run", "pipelines": "pipeline", "datasets": "dataset", "dataset_versions": "dataset_version", "models": "model",
             "model_versions": "model_version", "monitors": "monitor", "windows": "monitor_window", "tracking_runs": "tracking_run",
             "artifacts": "artifact", "members": "member"}
    assert content == {k: int(stands[t]) - int(before[t]) for k, t in named.items()} and content["runs"] == 2
    assert rows(server)["run"] == stands["run"]
    tag = api.get("/api/v1/projects/gone", expect=200).headers["ETag"]
    api.delete("/api/v1/projects/gone", headers={"If-Match": tag}, expect=204)
    assert rows(server) == before
    assert told(server, "project.updated") == ["1"] and told(server, "project.deleted") == ["1"]


def test_a_project_stays_while_a_run_of_it_goes_on(server):
    api = server.admin()
    api.post("/api/v1/projects", {"name": "busy"}, expect=201)
    source = json.dumps({"apiVersion": "tidemill/v1", "kind": "Pipeline", "metadata": {"name": "p"},
                         "spec": {"steps": {"a": {"run": ["true"], "placement": {"pool": "nobody"}}}}})
    run = api.post("/api/v1/projects/busy/runs", {"source": source}, expect=201).json()["id"]
    tag = api.get("/api/v1/projects/busy", expect=200).headers["ETag"]
    assert api.delete("/api/v1/projects/busy?dry_run=true", expect=200).json()["active_runs"] == 1
    refused = api.delete("/api/v1/projects/busy", headers={"If-Match": tag}, expect=409).json()
    assert refused["detail"] == "1 of the project's runs have not ended; cancel them first"
    api.get(f"/api/v1/runs/{run}", expect=200)
    api.post(f"/api/v1/runs/{run}/cancel", expect=200)
    until(lambda: api.get(f"/api/v1/runs/{run}", expect=200).json()["state"] == "cancelled", 30)
    tag = api.get("/api/v1/projects/busy", expect=200).headers["ETag"]
    api.delete("/api/v1/projects/busy", headers={"If-Match": tag}, expect=204)


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
