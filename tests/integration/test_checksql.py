"""tools/checksql.sh finds what is wrong with a statement, and says where."""
import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SCHEMA = "CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE TABLE t (id bigint, name text, mood mood, price numeric, n int);\n"


@pytest.fixture
def check(tmp_path):
    (tmp_path / "migrations").mkdir()
    (tmp_path / "queries").mkdir()
    (tmp_path / "migrations/0001_t.sql").write_text(SCHEMA)

    def run(queries):
        (tmp_path / "queries/t.sql").write_text(queries)
        done = subprocess.run([os.path.join(ROOT, "tools/checksql.sh"), tmp_path], capture_output=True, text=True, timeout=120)
        assert done.stderr == ""
        return done.returncode, done.stdout.replace(str(tmp_path) + "/queries/", "").splitlines()

    return run


def test_good_statements(check):
    assert check("""
-- name: t_get :one
-- params: id bigint, names text[]
SELECT id, name, mood, n
  FROM t
 WHERE id = $1 OR name = ANY($2);
-- name: t_put :exec
-- params: id int, mood text
INSERT INTO t (id, mood) VALUES ($1, $2::mood);
-- name: t_call :exec
SELECT pg_sleep(0);
-- name: t_where_name :part
-- params: name text
name = $1
""") == (0, ["3 statements are fine"])


@pytest.mark.parametrize("statement, says", [
    ("-- name: a :many\n-- it is late\nSELECT id,\n       nam\n  FROM t;", "t.sql:4: statement a: column \"nam\" does not exist"),
    ("-- name: a :many\n-- params: id text\nSELECT id FROM t WHERE id = $1;", "operator does not exist: bigint = text"),
    ("-- name: a :exec\n-- params: id bigint\nDELETE FROM t WHERE id = $1 AND n = $2;", "uses $2, but declares 1 parameters"),
    ("-- name: a :exec\n-- params: id bigint, n int\nDELETE FROM t WHERE id = $1;", "declares $2, but does not use it"),
    ("-- name: a :one\nSELECT price FROM t;", "the column price has a type that lib/db does not read (OID 1700): cast it"),
    ("-- name: a :exec\nSELECT id FROM t;", "returns rows: it should be :one or :many"),
    ("-- name: a :one\nDELETE FROM t;", "returns no rows: it should be :exec"),
    ("-- name: a :many\nSELECT id, n AS id FROM t;", "two columns are called id"),
])
def test_bad_statements(check, statement, says):
    code, out = check(statement)
    assert code == 1 and len(out) == 1, out
    assert out[0].startswith("t.sql:") and says in out[0], out


@pytest.mark.parametrize("text, says", [
    ("CREATE INDEX run_x ON run (id);", "3: an index on run, which can be large: CREATE INDEX CONCURRENTLY"),
    ("CREATE UNIQUE INDEX metric_x\n\tON metric USING btree (id)\n\tWHERE id > 3;", "3: an index on metric"),
    ("ALTER TABLE step ADD COLUMN a int, ADD CONSTRAINT step_x CHECK (a > 0);", "3: a constraint reads all of step"),
    ("ALTER TABLE attempt\n\tALTER COLUMN a SET NOT NULL;", "3: SET NOT NULL reads all of attempt"),
    ("ALTER TABLE attempt ALTER a TYPE bigint;", "3: another type of a column of attempt"),
    ("ALTER TABLE event ADD UNIQUE (id);", "3: a constraint builds an index on event"),
    ("CREATE INDEX CONCURRENTLY run_x ON run (id);", None),
    ("CREATE INDEX pool_x ON pool (name);", None),
    ("CREATE TABLE run (id text);\nCREATE INDEX run_x ON run (id);", None),
    ("ALTER TABLE step ADD COLUMN a int, ADD CONSTRAINT step_x CHECK (a > 0) NOT VALID;\nALTER TABLE step ALTER b SET NOT NULL;",
     "4: SET NOT NULL")])
def test_migrations_that_would_hold_up_a_large_table(tmp_path, text, says):
    path = tmp_path / "0900_x.sql"
    path.write_text("-- CREATE INDEX run_y ON run (id);\n\n" + text + "\n")
    done = subprocess.run(["awk", "-f", os.path.join(ROOT, "tools/migrations.awk"), path], capture_output=True, text=True, timeout=20)
    assert (done.returncode, bool(done.stdout)) == ((0, False) if says is None else (1, True)), done.stdout + done.stderr
    assert says is None or done.stdout.startswith(f"{path}:{says}"), done.stdout
