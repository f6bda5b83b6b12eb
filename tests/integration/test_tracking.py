"""The native view of tracking runs: what the dashboard and the CLI read."""
import hashlib
import math

import pytest

from harness import query

M = "/api/2.0/mlflow"
A = "/api/2.0/mlflow-artifacts/artifacts"


@pytest.fixture
def run(api, project):
    reply = api.post(f"{M}/runs/create", {"run_name": "seen"}, headers={"X-Tidemill-Project": project}, expect=200)
    return reply.json()["run"]["info"]


def log(api, run, **body):
    api.post(f"{M}/runs/log-batch", dict(body, run_id=run["run_id"]), expect=200)


def points(key, values):
    return [{"key": key, "value": v, "timestamp": 1000 + i, "step": i} for i, v in enumerate(values)]


def series(api, run, **args):
    reply = api.get(f"/api/v1/tracking-runs/{run['run_id']}/series?{query(**args)}", expect=200).json()
    return {s["key"]: s for s in reply["items"]}


def test_the_run(api, run):
    log(api, run, metrics=points("loss", [3, 2, "NaN"]), params=[{"key": "alpha", "value": "1"}],
        tags=[{"key": "note", "value": "a\nb"}])
    got = api.get(f"/api/v1/tracking-runs/{run['run_id']}", expect=200).json()
    assert got["name"] == "seen" and got["status"] == "RUNNING" and got["artifact_uri"] == run["artifact_uri"]
    assert got["params"] == [{"key": "alpha", "value": "1"}]
    assert {"key": "note", "value": "a\nb"} in got["tags"]
    assert got["metrics"] == [{"key": "loss", "value": "NaN", "time": 1002, "step": 2}]
    assert api.get("/api/v1/tracking-runs/" + "0" * 32).status == 404


def test_series_of_few_points_are_the_points(api, run):
    log(api, run, metrics=points("a", [5, 1, "NaN", "Infinity"]) + points("b", [0.5]))
    got = series(api, run)
    assert set(got) == {"a", "b"} and got["a"]["total"] == 4
    assert [p["last"] for p in got["a"]["points"]] == [5.0, 1.0, "NaN", "Infinity"]
    nan = got["a"]["points"][2]
    assert nan == {"step": 2, "time": 1002, "last": "NaN", "min": "NaN", "max": "NaN", "count": 1}
    assert set(series(api, run, key="b")) == {"b"}
    assert series(api, run, key="none") == {}


def test_series_in_buckets(api, run):
    values = [math.sin(i / 50) for i in range(1000)]
    log(api, run, metrics=points("wave", values))
    got = series(api, run, key="wave", buckets=10)["wave"]
    assert got["total"] == 1000 and len(got["points"]) == 10
    for i, p in enumerate(got["points"]):
        part = values[i * 100:(i + 1) * 100]
        assert p["count"] == 100 and p["step"] == i * 100 + 99
        assert p["min"] == min(part) and p["max"] == max(part) and p["last"] == part[-1]


def test_series_over_the_whole_range_of_steps(api, run):
    log(api, run, metrics=[{"key": "far", "value": 1, "timestamp": 1, "step": -2**63},
                           {"key": "far", "value": 2, "timestamp": 1, "step": 2**63 - 1}])
    got = series(api, run, key="far", buckets=4)["far"]
    assert [p["last"] for p in got["points"]] == [1.0, 2.0]


@pytest.mark.parametrize("args", [{"buckets": 0}, {"buckets": 2001}, {"buckets": "x"}, {"unknown": 1}])
def test_bad_queries(api, run, args):
    assert api.get(f"/api/v1/tracking-runs/{run['run_id']}/series?{query(**args)}").status == 422


def test_artifacts(api, run):
    root = run["artifact_uri"].removeprefix("mlflow-artifacts:/")
    for path, data in (("model/a.bin", b"12345"), ("model/sub/b.bin", b"123"), ("page.html", b"<script>")):
        api.put(f"{A}/{root}/{path}", data, headers={"Content-Type": "text/html"}, expect=200)
    base = f"/api/v1/tracking-runs/{run['run_id']}/artifacts"
    assert api.get(base, expect=200).json()["items"] == [
        {"path": "model", "is_dir": True, "size": 8},
        {"path": "page.html", "is_dir": False, "size": 8, "digest": hashlib.sha256(b"<script>").hexdigest()}]
    assert [a["path"] for a in api.get(f"{base}?path=model", expect=200).json()["items"]] == ["model/a.bin", "model/sub"]
    assert api.get(f"{base}?path=none", expect=200).json()["items"] == []
    for bad in ("../x", "/a", "a/", "a//b"):
        assert api.get(f"{base}?{query(path=bad)}").status == 422
    page = api.get(f"{base}/page.html", expect=200)
    assert page.body == b"<script>" and page.headers["Content-Type"] == "application/octet-stream"
    assert "attachment" in page.headers["Content-Disposition"] and "sandbox" in page.headers["Content-Security-Policy"]
    assert api.get(f"{base}/model").status == 404


def test_others_see_nothing(server, api, run):
    api.post("/api/v1/projects", {"name": "apart"}, expect=201)
    stranger = server.person("tracking-stranger", "apart", "owner")
    for tail in ("", "/series", "/artifacts", "/artifacts/x"):
        assert stranger.get(f"/api/v1/tracking-runs/{run['run_id']}{tail}").status == 404
