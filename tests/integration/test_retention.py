"""Retention: what goes when its age has passed, what stays, and what a dry run says."""
import pytest

from harness import ROOT
from spool import Attempt, Worker, frames, new_id

RETENTION = {"runs": "30d", "logs": "7d", "artifacts": "14d", "windows": "10d"}


@pytest.fixture(scope="module")
def worker(server):
    return Worker(server, "retention-worker")


@pytest.fixture
def project(api, request):
    name = request.node.name.replace("_", "-")[:60]
    reply = api.post("/api/v1/projects", {"name": name, "retention": RETENTION}, expect=201).json()
    return name, reply["id"]


def ended(server, worker, project_id, age):
    """A run that ended so long ago, with a log, a tracking run with an artifact and a metric."""
    a = Attempt(server, worker, project_id)
    text = frames(f"log of {a.id}\n")
    a.put(text)
    a.final(text)
    tracking = new_id("x")[2:].ljust(32, "0")
    week = f"date_trunc('week', now() - interval '{age}')::date"
    server.sql(f"""
        SELECT partition_ensure('log_chunk', 'week', {week});
        UPDATE log SET made = {week} WHERE attempt_id = '{a.id}';
        UPDATE log_chunk SET made = {week} WHERE attempt_id = '{a.id}';
        UPDATE run SET state = 'succeeded', ended_at = now() - interval '{age}' WHERE id = '{a.run}';
        UPDATE attempt SET state = 'succeeded', ended_at = now() - interval '{age}' WHERE id = '{a.id}';
        UPDATE step SET state = 'succeeded', ended_at = now() - interval '{age}', tracking_run = '{tracking}'
        WHERE id = '{a.step}';
        INSERT INTO blob (digest, size) VALUES ('\\x{'ab' * 32}', 3) ON CONFLICT DO NOTHING;
        WITH t AS (INSERT INTO tracking_run (run_id, experiment_id, project_id, made, name, status, end_time, artifact_uri)
            SELECT '{tracking}', e.id, '{project_id}', date_trunc('month', now()), 'r', 'FINISHED',
                extract(epoch FROM now() - interval '{age}') * 1000, '' FROM experiment e WHERE e.project_id = '{project_id}'
            RETURNING id, made), k AS (INSERT INTO metric_key (key) VALUES ('loss') ON CONFLICT (key)
            DO UPDATE SET key = excluded.key RETURNING id),
        a AS (INSERT INTO artifact (tracking_id, path, size, digest) SELECT id, 'f', 3, '\\x{'ab' * 32}' FROM t)
        INSERT INTO metric SELECT t.made, t.id, k.id, 0, 0, 1, false FROM t, k""")
    a.tracking = tracking
    return a


def count(server, table, where):
    return int(server.sql(f"SELECT count(*) FROM {table} WHERE {where}")[0])


def left(server, a):
    tracking = f"tracking_id = (SELECT id FROM tracking_run WHERE run_id = '{a.tracking}')"
    return {"run": count(server, "run", f"id = '{a.run}'"), "chunks": count(server, "log_chunk", f"attempt_id = '{a.id}'"),
            "artifacts": count(server, "artifact", tracking), "metrics": count(server, "metric", tracking)}


ALL = {"run": 1, "chunks": 1, "artifacts": 1, "metrics": 1}


def test_ages(server, api, project, worker):
    name, project_id = project
    runs = {age: ended(server, worker, project_id, age) for age in ("1 day", "8 days", "15 days", "31 days")}
    metrics = count(server, "metric", "true")
    dry = api.post(f"/api/v1/projects/{name}/retention?dry_run=true", expect=200).json()
    assert (dry["dry_run"], dry["runs"], dry["logs"], dry["artifacts"], dry["windows"]) == (True, 1, 3, 2, 0)
    assert all(left(server, a) == ALL for a in runs.values())
    done = api.post(f"/api/v1/projects/{name}/retention", expect=200).json()
    assert (done["dry_run"], done["runs"], done["logs"], done["artifacts"]) == (False, 1, 2, 1)
    assert left(server, runs["1 day"]) == ALL
    assert left(server, runs["8 days"]) == {**ALL, "chunks": 0}
    assert left(server, runs["15 days"]) == {**ALL, "chunks": 0, "artifacts": 0}
    assert left(server, runs["31 days"]) == dict.fromkeys(ALL, 0)
    assert count(server, "metric", "true") == metrics - 1
    assert api.get(f"/api/v1/attempts/{runs['8 days'].id}/log").json()["code"] == "gone"
    assert runs["8 days"].put(frames("more"), 0) == len(frames(f"log of {runs['8 days'].id}\n"))
    assert api.get(f"/api/v1/attempts/{runs['1 day'].id}/log", expect=200).json()["total"] == 1
    assert server.sql(f"SELECT data->>'logs' FROM event WHERE subject = '{project_id}' AND "
                      "type = 'project.retention_applied'") == ["2"]
    again = api.post(f"/api/v1/projects/{name}/retention", expect=200).json()
    assert (again["runs"], again["logs"], again["artifacts"]) == (0, 0, 0)


def test_a_log_that_came_late_waits_for_its_week(server, api, project, worker):
    name, project_id = project
    a = ended(server, worker, project_id, "8 days")
    server.sql(f"""UPDATE log SET made = date_trunc('week', now())::date WHERE attempt_id = '{a.id}';
        UPDATE log_chunk SET made = date_trunc('week', now())::date WHERE attempt_id = '{a.id}'""")
    assert api.post(f"/api/v1/projects/{name}/retention", expect=200).json()["logs"] == 0
    assert left(server, a) == ALL


def statement(name):
    """A statement of schema/queries, with its parameters as $1 …"""
    text = "".join(f.read_text() for f in sorted((ROOT / "schema/queries").glob("*.sql")))
    body = text.split(f"-- name: {name} :")[1].split("-- name:")[0].split("\n", 1)[1]
    return "\n".join(line for line in body.splitlines() if not line.startswith("--")).rstrip().rstrip(";")


@pytest.mark.parametrize("name, types, values, index", [
    ("retention_logs_old", "text", "'x'", "log_kept"), ("retention_logs_remove", "text, bigint", "'x', 5", "log_kept"),
    ("decision_outcome", "text", "'x'", "decision_run"),
    ("decision_list", "text, text, text, bigint", "'x', 'm', 'z', 5", "decision_monitor")])
def test_statements_that_must_not_read_whole_tables(server, name, types, values, index):
    plan = "\n".join(server.sql(f"""SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan;
        PREPARE s ({types}) AS {statement(name)}; EXPLAIN EXECUTE s ({values})"""))
    assert f" {index} " in plan, plan


def test_more_than_a_batch(server, api, project, worker):
    name, project_id = project
    for _ in range(25):
        ended(server, worker, project_id, "40 days")
    kept = Attempt(server, worker, project_id)  # not ended
    done = api.post(f"/api/v1/projects/{name}/retention", expect=200).json()
    assert done["runs"] == 25
    assert server.sql(f"SELECT id FROM run WHERE project_id = '{project_id}'") == [kept.run]


def test_without_ages_all_is_kept(server, api, worker):
    project_id = api.post("/api/v1/projects", {"name": "keeps-all"}, expect=201).json()["id"]
    a = ended(server, worker, project_id, "4000 days")
    done = api.post("/api/v1/projects/keeps-all/retention", expect=200).json()
    assert (done["runs"], done["logs"], done["artifacts"], done["windows"]) == (0, 0, 0, 0)
    assert left(server, a) == ALL


def test_a_deleted_run_leaves_nothing(server, api, project, worker):
    name, project_id = project
    a = ended(server, worker, project_id, "1 day")
    metrics = count(server, "metric", "true")
    api.delete(f"/api/v1/runs/{a.run}", expect=204)
    assert left(server, a) == dict.fromkeys(ALL, 0) and count(server, "metric", "true") == metrics - 1


def test_only_owners(server, api, project):
    name, _ = project
    person = server.person("retention-operator", name, "operator")
    assert person.post(f"/api/v1/projects/{name}/retention?dry_run=true").status == 403
