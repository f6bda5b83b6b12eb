"""A list reads about as many rows as it shows, whatever is asked for: not all that a project has ever had."""
import json
import re
from pathlib import Path

import pytest

QUERIES = Path(__file__).parents[2] / "schema/queries"
RUNS = 20000


@pytest.fixture(scope="module")
def runs(server):
    """A project with many runs, of which a few are of a pipeline of their own."""
    server.admin().post("/api/v1/projects", {"name": "lists"}, expect=201)
    [project] = server.sql("SELECT id FROM project WHERE name = 'lists'")
    server.sql(f"""INSERT INTO run (id, project_id, pipeline, number, spec, state, trigger, ended_at)
        SELECT 'run_' || lpad(i::text, 26, '0'), '{project}', CASE WHEN i % 5000 = 0 THEN 'few' ELSE 'many' END, i, '{{}}',
            CASE WHEN i % 10000 = 0 THEN 'failed' ELSE 'succeeded' END, 'api', now() FROM generate_series(1, {RUNS}) i""")
    server.sql("ANALYZE run")
    yield project
    server.sql(f"DELETE FROM run WHERE project_id = '{project}'")


def numbers(api, **query):
    text = "&".join(f"{k}={v}" for k, v in query.items())
    return [r["number"] for r in api.get(f"/api/v1/projects/lists/runs?{text}", expect=200).json()["items"]]


def test_runs_by_pipeline_and_state(admin, runs):
    assert numbers(admin, limit=3) == [20000, 19999, 19998]
    assert numbers(admin, state="failed") == [20000, 10000]
    assert numbers(admin, pipeline="few") == [20000, 15000, 10000, 5000]
    assert numbers(admin, pipeline="few", state="succeeded") == [15000, 5000]
    assert numbers(admin, pipeline="many", state="failed") == [] == numbers(admin, pipeline="none")
    page = admin.get("/api/v1/projects/lists/runs?pipeline=few&limit=3", expect=200).json()
    assert numbers(admin, pipeline="few", limit=3, cursor=page["next_cursor"]) == [5000]


def read_rows(server, name, args):
    """Rows that the tables of the named statement's plan have read, for the plan that is kept for any parameters."""
    text = (QUERIES / "run.sql").read_text()
    params, body = re.search(rf"-- name: {name} :many\n-- params: ([^\n]*)\n(.*?);\n", text, re.S).groups()
    types = ", ".join(p.split()[1] for p in params.split(","))
    plan = "\n".join(server.sql(f"SET plan_cache_mode = force_generic_plan; PREPARE list ({types}) AS {body};"
                                f" EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE list ({args})"))

    def count(node):
        own = 0
        if node["Node Type"].endswith("Scan") and node.get("Relation Name") == "run":
            own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        return own + sum(count(x) for x in node.get("Plans", []))

    return count(json.loads(plan)[0]["Plan"])


@pytest.mark.parametrize("pipeline, state", [("NULL", "NULL"), ("NULL", "'failed'"), ("NULL", "'cancelled'"), ("'few'", "NULL"),
                                             ("'none'", "NULL"), ("'many'", "'failed'"), ("'many'", "NULL")])
def test_runs_that_are_not_asked_for_are_not_read(server, runs, pipeline, state):
    assert read_rows(server, "run_list", f"'{runs}', {pipeline}, {state}, '~', 50") <= 50 * 6 + 50
