"""The story of the example, told to the monitor directly: scored quarters in, windows closed, decisions out."""
import json

import pytest

import monitor_world as world

BASE = "/api/v1/projects/demo"
MONITOR = (world.EXAMPLE / "monitor.yaml").read_text()


@pytest.fixture(scope="module")
def story(server, api, project):
    """Everything up to the first quarter of 2008, decided."""
    version = world.dataset(api, project, "ridership", {"chicago.csv.gz": world.chicago()})
    header, rows = world.scored("2001-01-01", "2003-09-30", "2003-10-01", "2009-12-31")
    level = world.error(world.quarter(rows, 2003, 4))
    world.model(server, project, "ridership", version, level=level, **{"from": "2001-01-01", "to": "2003-09-30"})
    source = (world.EXAMPLE / "tidemill.yaml").read_text()
    api.put(f"{BASE}/pipelines/ridership", {"source": source}, expect=200)
    made = api.put(f"{BASE}/monitors/ridership", MONITOR.encode(), headers={"Content-Type": "application/yaml"}, expect=200)
    assert made.json()["champion"] == "ridership/1"
    closed = {}
    for year in range(2004, 2009):
        for q in range(1, 5):
            if (year, q) > (2008, 1):
                break
            part = world.quarter(rows, year, q)
            r = api.post(f"{BASE}/monitors/ridership/observations?batch={year}q{q}", world.csv(header, part),
                         headers={"Content-Type": "text/csv"}, expect=200).json()
            assert r == {"rows": len(part), "duplicates": 0, "late": 0, "unknown": 0, "windows": 1, "reopened": 0,
                         "replayed": False}
            start = f"{year}-{3 * q - 2:02d}-01T00:00:00Z"
            done = api.post(f"{BASE}/monitors/ridership/windows/close", {"start": start}, expect=200).json()
            assert done["closed"] == 1 and len(done["decisions"]) == 3
            closed[year, q] = {d["cause"]: d for d in (api.get(f"/api/v1/decisions/{i}", expect=200).json()
                                                       for i in done["decisions"])}
    return {"level": level, "closed": closed, "rows": rows, "header": header}


def test_it_warns_at_the_first_and_retrains_at_the_second_hot_quarter(story, server):
    hot = {at: d["performance"] for at, d in story["closed"].items() if d["performance"]["inputs"]["verdict"] == "hot"}
    for at, d in story["closed"].items():
        p = d["performance"]
        print(at, p["action"], p["fired"], round(p["inputs"]["score"], 3), p["reason"], "|", d["drift"]["inputs"]["drifted"])
    assert sorted(hot) == [(2007, 4), (2008, 1)]
    warn, fire = hot[2007, 4], hot[2008, 1]
    assert (warn["action"], warn["fired"]) == ("warn", True) and warn["inputs"]["score"] == pytest.approx(1.66, abs=0.01)
    assert (fire["action"], fire["fired"]) == ("retrain", True) and fire["inputs"]["score"] == pytest.approx(1.67, abs=0.01)
    assert "retraining is started" in fire["reason"] and fire["run_id"] and fire["run_state"] in ("queued", "running")
    run = server.admin().get(f"/api/v1/runs/{fire['run_id']}", expect=200).json()
    assert run["trigger"] == "decision" and run["decision_id"] == fire["id"]
    assert run["inputs"] == {"from": "2005-01-01", "to": "2007-12-31", "holdout_from": "2008-01-01",
                             "holdout_to": "2008-03-31", "alpha": 1.0}
    assert server.sql("SELECT count(*) FROM retraining") == ["1"]
    assert all(d["data_quality"]["inputs"]["verdict"] == "calm" for d in story["closed"].values())


def test_the_retraining_is_gated_promoted_and_pays_off(story, server, api):
    fire = story["closed"][2008, 1]["performance"]
    header, fresh = world.scored("2005-01-01", "2007-12-31", "2008-01-01", "2009-12-31")
    holdout = {"champion": world.quarter(story["rows"], 2008, 1), "challenger": world.quarter(fresh, 2008, 1)}
    run = world.end_steps(server, api, "demo", fire["run_id"], {
        "train.model": {"model/model.json": b"{}", "model/sub/weights.bin": b"\0\1"},
        "evaluate.predictions": {"predictions.csv": world.predictions(**holdout)}})
    assert (run["state"], run["model_version"]) == ("succeeded", "ridership/2"), run
    v = api.get(f"{BASE}/models/ridership/versions/2", expect=200).json()
    assert (v["verdict"], v["aliases"], v["run_id"]) == ("promoted", ["champion"], fire["run_id"]), v["verdict_reason"]
    assert v["training_data"]["from"] == "2005-01-01" and v["training_data"]["dataset"] == "ridership"
    assert v["level"] == pytest.approx(world.error(holdout["challenger"]), abs=1e-4)
    assert v["gate"]["champion"] == pytest.approx(world.error(holdout["champion"]), abs=1e-4)
    assert {i["verdict"] for i in v["gate"]["items"]} <= {"pass", "skipped"} and v["gate"]["levels"]["mae"] == v["level"]
    monitor = api.get(f"{BASE}/monitors/ridership", expect=200).json()
    assert monitor["champion"] == "ridership/2"
    assert monitor["policy_state"]["open"] is False and monitor["policy_state"]["performance"]["level"] == "ok"
    assert server.sql("SELECT count(*) FROM retraining") == ["0"]
    decision = api.get(f"/api/v1/decisions/{fire['id']}", expect=200).json()
    assert (decision["run_state"], decision["model_version"], decision["verdict"]) == ("succeeded", "ridership/2", "promoted")
    assert decision["outcome"] == {}

    old, new = [], []
    for year, q in [(2008, 2), (2008, 3), (2008, 4), (2009, 1)]:
        part = world.quarter(fresh, year, q)
        api.post(f"{BASE}/monitors/ridership/observations?batch={year}q{q}", world.csv(header, part),
                 headers={"Content-Type": "text/csv"}, expect=200)
        done = api.post(f"{BASE}/monitors/ridership/windows/close", {"before": f"{year + q // 4}-{q % 4 * 3 + 1:02d}-01T00:00:00Z"},
                        expect=200).json()
        assert done["closed"] == 1
        old.append(world.error(world.quarter(story["rows"], year, q)))
        new.append(world.error(part))
    assert sum(new) < sum(old)
    outcome = api.get(f"/api/v1/decisions/{fire['id']}", expect=200).json()["outcome"]
    assert outcome["windows"] == 4 and outcome["after"] == pytest.approx(sum(new) / 4, abs=1e-6)
    assert outcome["before"] == pytest.approx(world.error(holdout["champion"]), abs=1e-6) and outcome["after"] < outcome["before"]
    windows = api.get(f"{BASE}/monitors/ridership/windows?limit=4", expect=200).json()["items"]
    assert {w["model_version"] for w in windows} == {"ridership/2"} and all(w["level"] == v["level"] for w in windows)
    # What a window is said to be is explained by the cause that made it so.
    assert all("all is well" not in w["reason"] for w in windows if w["severity"] in ("warn", "alert")), windows


def test_the_table_of_features_and_windows(story, api):
    heat = api.get(f"{BASE}/monitors/ridership/heat?windows=10", expect=200).json()
    assert len(heat["windows"]) == 10 and heat["windows"] == sorted(heat["windows"], key=lambda w: w["start"])
    assert len(heat["features"]) == 48
    for f in heat["features"]:
        assert len(f["values"]) == len(f["drifted"]) == 10 and f["threshold"] == 0.2
    newest = heat["windows"][-1]["id"]
    metrics = api.get(f"{BASE}/monitors/ridership/windows/{newest}/metrics", expect=200).json()["items"]
    names = {(m["feature"], m["metric"]) for m in metrics}
    assert {("temp", "psi"), ("temp", "ks"), ("temp", "wasserstein"), ("temp", "jensen_shannon"), ("temp", "missing_rate"),
            ("", "row_count"), ("", "mae"), ("Cubs_Home", "psi")} <= names
    assert {m["status"] for m in metrics} <= {"ok", "constant"}
    psi = {m["feature"]: m["value"] for m in metrics if m["metric"] == "psi"}
    assert all(f["values"][-1] == pytest.approx(psi[f["name"]]) for f in heat["features"])
