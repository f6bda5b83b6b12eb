"""Pages of lists whose items are large, and what lists leave out."""
from harness import Server, query
from stack import pipeline
from world import World


def test_a_page_of_large_items_is_cut_and_the_next_goes_on(server, api, project):
    world = World(server, "large", "model-l")
    source = world.monitor_source.replace("name: m}", "name: m0}") + "\n" + ("#" + "x" * 120 + "\n") * 8000
    base = f"{world.base}/monitors"
    api.put(f"{base}/m0", source.encode(), headers={"Content-Type": "application/yaml"}, expect=200)
    api.delete(f"{base}/m", expect=204)
    server.sql("INSERT INTO monitor SELECT (jsonb_populate_record(o, jsonb_build_object('id', 'mon_' || i,"
               " 'name', 'm' || i))).* FROM monitor o, generate_series(1, 120) i WHERE o.name = 'm0'")
    names, sizes, cursor = [], [], None
    while cursor is not None or not names:
        page = api.get(f"{base}?" + query(limit=500, **({"cursor": cursor} if cursor else {})), expect=200)
        items = page.json()["items"]
        assert items and all(len(i["source"]) == len(source) for i in items)
        names += [i["name"] for i in items]
        sizes.append(len(page.body))
        cursor = page.json().get("next_cursor")
    assert sorted(names) == sorted(f"m{i}" for i in range(121)) and names == sorted(names)
    assert len(sizes) > 3 and max(sizes) < 24 << 20


def test_a_list_of_pipelines_leaves_their_files_out(api, project):
    source = pipeline("listed", {"a": {"run": ["true"]}})
    made = api.put(f"/api/v1/projects/{project}/pipelines/listed", {"source": source}, expect=200).json()
    assert made["source"] == source and "steps" in made["spec"]
    [item] = [i for i in api.get(f"/api/v1/projects/{project}/pipelines", expect=200).json()["items"] if i["name"] == "listed"]
    assert item == {k: v for k, v in made.items() if k not in ("spec", "source", "schedules", "owed")}


def test_a_run_with_more_params_than_an_answer_holds_is_said_so(postgres):
    """A job may log any number of them, batch by batch."""
    with Server(postgres) as server:
        api = server.admin()
        api.post("/api/v1/projects", {"name": "default"}, expect=201)
        run = api.post("/api/2.0/mlflow/runs/create", {"experiment_id": "0"}, expect=200).json()["run"]["info"]["run_id"]
        api.post("/api/2.0/mlflow/runs/log-parameter", {"run_id": run, "key": "k", "value": "x" * 6000}, expect=200)
        server.sql("INSERT INTO param SELECT tracking_id, 'k' || i, value FROM param, generate_series(1, 45000) i")
        for path in (f"/api/v1/tracking-runs/{run}", f"/api/2.0/mlflow/runs/get?run_id={run}"):
            assert "67108864" in api.get(path, expect=413).body.decode()
