"""The registry and the end of runs: versions, files, aliases with history, the gate, runs that fail at their end."""
import gzip
import subprocess
import threading
import time

import pytest

import monitor_world as world
from harness import BUILD, SANITIZERS, advisory_lock, until

BASE = "/api/v1/projects/demo"
PIPELINE = """
apiVersion: tidemill/v1
kind: Pipeline
metadata: {name: %(name)s}
spec:
  inputs: {from: {type: date, default: 2020-01-01}, to: {type: date, default: 2020-04-29}}
  datasets: {history: {name: weather, version: latest}}
  models: {champion: {name: %(name)s, alias: champion, optional: true}}
  defaults: {runtimes: [process]}
  steps:
    train:
      run: ["true"]
      outputs: {model: {path: model, kind: model}}
    evaluate:
      needs: [train]
      run: ["true"]
      outputs: {predictions: {path: p.csv, kind: predictions}%(outputs)s}
  model:
    name: %(name)s
    from: train.model
    training_data: {dataset: history, column: date, from: "${inputs.from}", to: "${inputs.to}"}
    gate:
      predictions: evaluate.predictions
      metric: mae
      require: [{metric: mae, max: 5.0}]
      against: champion
      test: {min_rows: 50, draws: 200, margin: "2%%"}
      promote: champion
"""
MODEL = {"model/model.json": b'{"a": 1}', "model/deep/er/weights.bin": bytes(range(256)) * 8}


@pytest.fixture(scope="module")
def data(api, project):
    rows = ["date,temp,y"] + [f"2020-{1 + i // 29 % 12:02d}-{1 + i % 29:02d},{i % 17}.5,{i % 5}" for i in range(116)]
    return world.dataset(api, project, "weather", {"part.csv": ("\n".join(rows) + "\n").encode()})


def pipeline(api, name, outputs=""):
    api.put(f"{BASE}/pipelines/{name}", {"source": PIPELINE % {"name": name, "outputs": outputs}}, expect=200)


def submit(api, name, **inputs):
    return api.post(f"{BASE}/runs", {"pipeline": name, "inputs": inputs}, expect=201).json()["id"]


def table(**off):
    """100 rows scored by each model, which is off by so much."""
    out = ["row_id,model,y_true,y_pred"]
    for model, error in off.items():
        out += [f"r{i},{model},{i},{i + error * (1 + i % 3) / 2}" for i in range(100)]
    return ("\n".join(out) + "\n").encode()


def finish(server, api, run, predictions, model=MODEL, **more):
    return world.end_steps(server, api, "demo", run, {"train.model": model, "evaluate.predictions": {"p.csv": predictions}, **more})


def version(api, model, number="latest"):
    return api.get(f"{BASE}/models/{model}/versions/{number}", expect=200).json()


@pytest.mark.parametrize("change, inputs, at", [
    ('column: day', {}, "/column"), ('column: temp', {}, "/column"), ("", {"from": "2019-01-01", "to": "2019-12-31"}, "/from"),
    ('dataset: texts', {}, "/dataset"), ('dataset: ragged', {}, "/dataset")])
def test_training_data_that_is_not_there_registers_nothing(server, api, data, change, inputs, at):
    for name, file in {"texts": {"a.txt": b"x"}, "ragged": {"a.csv": b"date,x\n2020-01-01,1\n", "b.csv": b"date,x\n2020-01-01\n"}}.items():
        if api.get(f"{BASE}/datasets/{name}").status == 404:
            world.dataset(api, "demo", name, file)
    key, _, value = change.partition(": ")
    source = PIPELINE % {"name": "untrained", "outputs": ""}
    source = source.replace("dataset: history", f"dataset: {value}").replace("datasets: {", f"datasets: {{{value}: {{name: {value}}}, ") if key == "dataset" \
        else source.replace("column: date", change or "column: date")
    api.put(f"{BASE}/pipelines/untrained", {"source": source}, expect=200)
    run = finish(server, api, submit(api, "untrained", **inputs), table(challenger=1.0))
    assert (run["state"], run["reason"]) == ("failed", "model_invalid"), run
    assert run["message"].startswith(f"/spec/model/training_data{at}: "), run
    api.get(f"{BASE}/models/untrained", expect=404)


@pytest.mark.parametrize("span, at, whole", [
    ('from: "2020-02-01", to: "2020-01-01"', "to", True), ('from: soon, to: "2020-01-01"', "from", True),
    ('from: "${inputs.nope}", to: "2020-01-01"', "from", True), ('from: "2020-02-01", to: "${inputs.text}"', "to", False),
    ('from: "${inputs.to}", to: "${inputs.from}"', "to", False), ('from: "${inputs.text + 1d}", to: "2020-01-01"', "from", False)])
def test_a_span_of_training_data_that_cannot_be_is_refused(api, data, span, at, whole):
    """At once where the file says it all, else when its inputs are filled in."""
    source = PIPELINE % {"name": "span", "outputs": ""}
    source = source.replace('from: "${inputs.from}", to: "${inputs.to}"', span).replace("inputs: {", "inputs: {text: {type: string, default: x}, ")
    put = api.put(f"{BASE}/pipelines/span", {"source": source}, expect=422 if whole else 200)
    for reply in (put, api.post(f"{BASE}/runs", {"source": source}, expect=422)):
        if reply.status == 422:
            [error] = reply.json()["errors"]
            assert error["pointer"] == f"/source/spec/model/training_data/{at}", error


def test_versions_files_and_the_gate(server, api, data):
    pipeline(api, "gated")
    run = finish(server, api, submit(api, "gated"), table(challenger=1.0))
    assert (run["state"], run["model_version"]) == ("succeeded", "gated/1"), run
    v = version(api, "gated")
    assert (v["number"], v["verdict"], v["aliases"], v["metric"]) == (1, "promoted", ["champion"], "mae")
    assert v["level"] == pytest.approx(0.995, abs=0.01) and v["run_id"] == run["id"] and v["step_id"] and v["tracking_run"]
    assert v["training_data"] == {"dataset": "weather", "dataset_version": 1, "dataset_version_id": data, "column": "date",
                                  "from": "2020-01-01", "to": "2020-04-29"}
    assert v["datasets"] == [{"name": "history", "dataset": "weather", "number": 1, "version_id": data}]
    files = api.get(f"{BASE}/models/gated/versions/1/files", expect=200).json()["items"]
    assert [(f["path"], f["size"]) for f in files] == [("deep/er/weights.bin", 2048), ("model.json", 8)]
    got = api.get(f"{BASE}/models/gated/versions/1/files/deep/er/weights.bin", headers={"Range": "bytes=3-5"})
    assert (got.status, got.body) == (206, b"\3\4\5")
    api.get(f"{BASE}/models/gated/versions/1/files/none", expect=404)
    api.get(f"{BASE}/models/gated/versions/9", expect=404)
    api.get(f"{BASE}/models/gated/versions/x", expect=404)

    worse = finish(server, api, submit(api, "gated"), table(challenger=1.5, champion=1.0))
    assert worse["state"] == "succeeded"
    v2 = version(api, "gated", 2)
    assert (v2["verdict"], v2["aliases"]) == ("refused", []) and v2["verdict_reason"]
    better = finish(server, api, submit(api, "gated"), table(challenger=0.5, champion=1.0))
    assert better["model_version"] == "gated/3" and version(api, "gated", 3)["verdict"] == "promoted"
    alone = finish(server, api, submit(api, "gated"), table(challenger=0.1))
    assert version(api, "gated")["verdict"] == "refused" and "no rows of it" in version(api, "gated")["verdict_reason"], alone
    hopeless = finish(server, api, submit(api, "gated"), table(challenger=9.0, champion=9.5))
    assert "mae" in version(api, "gated")["verdict_reason"], hopeless
    m = api.get(f"{BASE}/models/gated", expect=200).json()
    assert (m["latest"], m["aliases"]) == (5, {"champion": 3})
    history = api.get(f"{BASE}/models/gated/aliases", expect=200).json()["items"]
    assert [(h["number"], h["previous"], h["cause"]) for h in history] == [(3, 1, "gate"), (1, None, "gate")]
    numbers = [v["number"] for v in api.get(f"{BASE}/models/gated/versions?limit=3", expect=200).json()["items"]]
    assert numbers == [5, 4, 3]


def test_a_version_has_the_metrics_of_the_step_that_made_it(server, api, data):
    pipeline(api, "measured")
    run = submit(api, "measured")
    for step, n in (("train", 5000), ("evaluate", 3)):
        server.sql(f"""
            INSERT INTO metric_key (key) SELECT '{step}/' || i FROM generate_series(1, {n}) i;
            WITH t AS (INSERT INTO tracking_run (run_id, experiment_id, project_id, made, name, status, artifact_uri)
                SELECT md5('{step}'), min(e.id), e.project_id, date_trunc('month', now()), 'r', 'RUNNING', ''
                FROM experiment e JOIN run r ON r.project_id = e.project_id WHERE r.id = '{run}' GROUP BY e.project_id RETURNING id)
            INSERT INTO metric_latest (tracking_id, key_id, step, time, value, is_nan)
            SELECT t.id, k.id, 0, 0, 1.5, k.key LIKE '%/1' FROM t, metric_key k WHERE k.key LIKE '{step}/%';
            UPDATE step SET tracking_run = md5('{step}') WHERE run_id = '{run}' AND name = '{step}'""")
    finish(server, api, run, table(challenger=1.0))
    metrics = version(api, "measured")["metrics"]
    assert len(metrics) == 4000 and {k.split("/")[0] for k in metrics} == {"train"}
    assert metrics["train/1"] is None and metrics["train/2"] == 1.5


def test_what_the_gate_refused_takes_its_alias_only_by_force(server, api, data, tmp_path):
    pipeline(api, "strict")
    finish(server, api, submit(api, "strict"), table(challenger=1.0))
    finish(server, api, submit(api, "strict"), table(challenger=1.5, champion=1.0))
    assert version(api, "strict")["verdict"] == "refused" and version(api, "strict")["gate"]["promote"] == "champion"
    url = f"{BASE}/models/strict/aliases"
    tag = {"If-Match": api.get(f"{url}/champion", expect=200).headers["ETag"]}
    r = api.put(f"{url}/champion", {"version": 2, "note": "I like it"}, headers=tag, expect=409).json()
    assert r["errors"][0]["pointer"] == "/version" and "only force" in r["detail"]
    assert version(api, "strict")["verdict_reason"][:60] in r["detail"], r
    for note in ({}, {"note": ""}, {"note": " \n"}):
        r = api.put(f"{url}/champion", {"version": 2, "force": True, **note}, headers=tag, expect=422).json()
        assert r["errors"][0]["pointer"] == "/note"
    api.put(f"{url}/champion", {"version": 1}, headers=tag, expect=200)  # has it
    api.put(f"{url}/blue", {"version": 2}, expect=200)  # is nobody's: the gate has no say
    spec = {"subject": {"model": "strict", "alias": "blue"}, "columns": {"id": "id", "time": "t", "prediction": "p"}, "window": {"size": "1d"}}
    api.put(f"{BASE}/monitors/strict", {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": "strict"}, "spec": spec},
            expect=200)
    assert "the monitor strict watches" in api.delete(f"{url}/blue", expect=409).json()["detail"]
    for number, expect in (1, 200), (2, 409):  # is watched
        blue = {"If-Match": api.get(f"{url}/blue", expect=200).headers["ETag"]}
        api.put(f"{url}/blue", {"version": number}, headers=blue, expect=expect)
    moved = api.put(f"{url}/champion", {"version": 2, "note": "the holdout was wrong", "force": True}, headers=tag, expect=200)
    assert moved.json()["number"] == 2

    env = {"XDG_CONFIG_HOME": str(tmp_path), "TIDEMILL_SERVER": f"http://127.0.0.1:{server.port}", "TIDEMILL_TOKEN": server.token,
           "TIDEMILL_PROJECT": "demo", **SANITIZERS}

    def cli(*args):
        return subprocess.run([BUILD / "tidemill", "model", "alias", "set", "strict", "champion", *args], env=env, text=True,
                              capture_output=True, timeout=60)

    assert cli("1").returncode == 0
    said = cli("2")
    assert said.returncode == 5 and "the gate has refused version 2: only force, with a note" in said.stderr, said
    said = cli("2", "--force")
    assert said.returncode == 2 and "--force needs --note" in said.stderr
    assert cli("2", "--force", "--note", "again").returncode == 0
    history = api.get(url, expect=200).json()["items"]
    assert [(h["number"], h["cause"], h["note"], h.get("actor")) for h in history if h["alias"] == "champion"] == [
        (2, "override", "again", "admin"), (1, "api", "", "admin"), (2, "override", "the holdout was wrong", "admin"),
        (1, "gate", history[-1]["note"], None)]


def test_a_champion_that_moved_meanwhile_refuses(server, api, data):
    pipeline(api, "race")
    early = submit(api, "race")  # has staged no champion
    finish(server, api, submit(api, "race"), table(challenger=1.0))
    run = finish(server, api, early, table(challenger=0.1, champion=1.0))
    v = version(api, "race")
    assert run["state"] == "succeeded" and v["verdict"] == "refused" and "has changed since" in v["verdict_reason"]


def test_two_ends_at_once_give_two_numbers(server, api, data):
    pipeline(api, "twins")
    runs = [submit(api, "twins") for _ in range(4)]
    for r in runs:
        world.end_steps(server, api, "demo", r, {"train.model": MODEL,
                        "evaluate.predictions": {"p.csv": table(challenger=1.0)}}, wait=False)
    ended = [world.ended(server, api, r) for r in runs]
    assert {r["model_version"] for r in ended} == {f"twins/{n}" for n in (1, 2, 3, 4)}
    assert sum(version(api, "twins", n)["verdict"] == "promoted" for n in (1, 2, 3, 4)) == 1


BAD_OUTPUTS = [
    (table(challenger=1.0).replace(b"r7,challenger,7", b"r7,challenger,seven"), MODEL, "output_invalid", "line 9, column y_true"),
    (b"row_id,model,y_true\n", MODEL, "output_invalid", "lacks the column y_pred"),
    (table(champion=1.0), MODEL, "output_invalid", "no rows of the challenger"),
    (table(challenger=1.0) + b"r1,challenger,1,1\n", MODEL, "output_invalid", "twice"),
    (table(challenger=1.0) + b"r1,winner,1,1\n", MODEL, "output_invalid", "challenger or champion"),
    (table(challenger=1.0), {}, "model_invalid", "train.model has no files"),
]


@pytest.mark.parametrize("predictions,model,reason,words", BAD_OUTPUTS)
def test_an_output_that_cannot_be_used_fails_the_run(server, api, data, predictions, model, reason, words):
    pipeline(api, "broken")
    run = finish(server, api, submit(api, "broken"), predictions, model)
    assert (run["state"], run["reason"]) == ("failed", reason) and words in run["message"], run
    assert run.get("model_version") in (None, "")
    assert server.sql("SELECT count(*) FROM model WHERE name = 'broken'") == ["0"]


PACKED = gzip.compress(table(challenger=1.0))
BROKEN_GZIP = [("random bytes", bytes(range(256)) * 8), ("not packed", table(challenger=1.0)), ("empty", b""), ("cut off", PACKED[:-9]),
               ("one bit wrong", PACKED[:len(PACKED) // 2] + bytes([PACKED[len(PACKED) // 2] ^ 4]) + PACKED[len(PACKED) // 2 + 1:]),
               ("a wrong checksum", PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:]), ("something behind it", PACKED + b"xyz"),
               ("the head alone", PACKED[:10])]


@pytest.fixture(scope="module")
def packed(server, api, data):
    source = PIPELINE.replace("p.csv", "p.csv.gz") % {"name": "packed", "outputs": ", seen: {path: o.csv.gz, kind: observations, monitor: packed}"}
    api.put(f"{BASE}/pipelines/packed", {"source": source}, expect=200)
    world.model(server, "demo", "packed", data, level=1)
    spec = {"subject": {"model": "packed"}, "columns": {"id": "row_id", "time": "t", "prediction": "y_pred"}, "window": {"size": "1d"}}
    api.put(f"{BASE}/monitors/packed", {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": "packed"}, "spec": spec},
            expect=200)


@pytest.mark.parametrize("what,body", BROKEN_GZIP, ids=[b[0] for b in BROKEN_GZIP])
def test_a_packed_output_that_is_broken_fails_the_run(server, api, packed, what, body):
    for outputs in ({"evaluate.predictions": {"p.csv.gz": body}}, {"evaluate.predictions": {"p.csv.gz": PACKED}, "evaluate.seen": {"o.csv.gz": body}}):
        run = world.end_steps(server, api, "demo", submit(api, "packed"), {"train.model": MODEL, **outputs})
        assert (run["state"], run["reason"]) == ("failed", "output_invalid"), (what, run)
        assert list(outputs)[-1] in run["message"], run
    assert api.get(f"{BASE}/models/packed", expect=200).json()["latest"] == 1
    assert api.get(f"{BASE}/monitors/packed/windows", expect=200).json()["items"] == []


def test_observations_of_a_run_reach_the_monitor_once(server, api, data):
    pipeline(api, "feeds", ", seen: {path: o.csv, kind: observations, monitor: feeds}")
    seen = b"id,t,p,y,temp\n" + b"".join(b"r%d,2021-01-01,%d.5,%d,3.5\n" % (i, i, i) for i in range(50))
    run = finish(server, api, submit(api, "feeds"), table(challenger=1.0), **{"evaluate.seen": {"o.csv": seen}})
    assert (run["state"], run["reason"]) == ("failed", "output_invalid") and "no such monitor" in run["message"]
    world.model(server, "demo", "feeds", data, level=1)
    spec = {"subject": {"model": "feeds"}, "columns": {"id": "id", "time": "t", "prediction": "p", "label": "y"},
            "window": {"size": "1d"}}
    api.put(f"{BASE}/monitors/feeds", {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": "feeds"}, "spec": spec},
            expect=200)
    run = finish(server, api, submit(api, "feeds"), table(challenger=0.5, champion=1.0), **{"evaluate.seen": {"o.csv": seen}})
    assert run["state"] == "succeeded", run
    rows = api.get(f"{BASE}/monitors/feeds/windows", expect=200).json()["items"]
    assert [w["rows"] for w in rows] == [50]
    assert not run.get("message")
    new = b"id,t,p,y,temp\n" + b"".join(b"n%d,2021-02-01,1.5,1,3.5\n" % i for i in range(200))
    finish(server, api, submit(api, "feeds"), table(challenger=0.5, champion=1.0), **{"evaluate.seen": {"o.csv": new}})
    until(lambda: "closed" in [w["state"] for w in api.get(f"{BASE}/monitors/feeds/windows", expect=200).json()["items"]])
    late = finish(server, api, submit(api, "feeds"), table(challenger=0.5, champion=1.0),
                  **{"evaluate.seen": {"o.csv": seen.replace(b"r9,", b"x9,")}})
    assert (late["state"], late["message"]) == ("succeeded", "Rows of evaluate.seen that came too late for the monitor feeds and were left out: 1.")
    bad = finish(server, api, submit(api, "feeds"), table(challenger=0.5, champion=1.0),
                 **{"evaluate.seen": {"o.csv": seen.replace(b"r9,", b",")}})
    assert bad["reason"] == "output_invalid" and "evaluate.seen" in bad["message"] and "line 11, column id" in bad["message"]


def test_aliases(server, api, data):
    for n in (1, 2):
        world.model(server, "demo", "hand", data, number=n, alias=None)
    url = f"{BASE}/models/hand/aliases/blue"
    api.get(url, expect=404)
    first = api.put(url, {"version": 1, "note": "try it"}, expect=200)
    assert first.json()["number"] == 1 and first.headers["ETag"] == '"1"'
    between = first.json()["changed_at"]
    time.sleep(0.01)
    api.put(url, {"version": 2}, expect=428)
    api.put(url, {"version": 2}, headers={"If-Match": '"7"'}, expect=412)
    moved = api.put(url, {"version": 2}, headers={"If-Match": '"1"'}, expect=200)
    assert moved.json()["number"] == 2 and moved.headers["ETag"] == '"2"'
    assert api.get(f"{url}?as_of={between}", expect=200).json()["number"] == 1
    api.get(f"{url}?as_of=2001-01-01T00:00:00Z", expect=404)
    bad = api.put(f"{BASE}/models/hand/aliases/green", {"version": 9}, expect=422).json()
    assert bad["errors"][0]["pointer"] == "/version"
    api.put(f"{BASE}/models/hand/aliases/Not%20Good", {"version": 1}, expect=422)
    for name in ("latest", "1", "7", "v7"):
        bad = api.put(f"{BASE}/models/hand/aliases/{name}", {"version": 1}, expect=422).json()
        assert bad["errors"][0]["pointer"] == "/alias" and "reads as a version" in bad["detail"]
        source = PIPELINE % {"name": "named", "outputs": ""}
        for place in ("promote: champion", "against: champion", "alias: champion"):
            wrong = source.replace(place, place.replace("champion", f'"{name}"'))
            bad = api.put(f"{BASE}/pipelines/named", {"source": wrong}, expect=422).json()
            assert place.split(":")[0] in bad["detail"] + bad["errors"][0]["pointer"] and "reads as a version" in bad["detail"], bad
        spec = {"subject": {"model": "hand", "alias": name}, "columns": {"id": "id", "time": "t", "prediction": "p"}, "window": {"size": "1d"}}
        bad = api.put(f"{BASE}/monitors/named", {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": "named"},
                                                 "spec": spec}, expect=422).json()
        assert bad["errors"][0]["pointer"] == "/spec/subject/alias"
    api.put(f"{BASE}/models/nobody/aliases/blue", {"version": 1}, expect=404)
    spec["subject"]["alias"] = "blue"
    api.put(f"{BASE}/monitors/watch", {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": "watch"}, "spec": spec}, expect=200)
    assert "the monitor watch watches what has this alias" in api.delete(url, expect=409).json()["detail"]
    assert api.get(url, expect=200).json()["number"] == 2
    api.delete(f"{BASE}/monitors/watch", expect=204)
    api.delete(url, expect=204)
    api.delete(url, expect=404)
    history = api.get(f"{BASE}/models/hand/aliases", expect=200).json()["items"]
    assert [(h["number"], h["previous"], h["note"]) for h in history] == [(None, 2, ""), (2, 1, ""), (1, None, "try it")]
    assert "hand" in [m["name"] for m in api.get(f"{BASE}/models", expect=200).json()["items"]]
    api.delete(f"{BASE}/models/hand", expect=204)
    api.get(f"{BASE}/models/hand", expect=404)


def test_the_gate_and_a_hand_may_move_a_watched_alias_at_once(server, api, data):
    """The gate's transaction is held where it has moved the alias; a move by hand then waits for it, and not it for that one."""
    pipeline(api, "both")
    finish(server, api, submit(api, "both"), table(challenger=1.0))
    finish(server, api, submit(api, "both"), table(challenger=1.5, champion=1.0))  # refused
    spec = {"subject": {"model": "both", "alias": "champion"}, "columns": {"id": "id", "time": "t", "prediction": "p"},
            "window": {"size": "1d"}}
    api.put(f"{BASE}/monitors/both", {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": "both"}, "spec": spec},
            expect=200)
    tag = {"If-Match": api.get(f"{BASE}/models/both/aliases/champion", expect=200).headers["ETag"]}
    server.sql("""
        CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM set_config('lock_timeout', '0', true); PERFORM pg_advisory_xact_lock_shared(4712); RETURN NEW; END $$;
        CREATE TRIGGER slowly AFTER UPDATE ON model_alias FOR EACH ROW EXECUTE FUNCTION slowly()""")
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event {} 'advisory'"
    by_gate, by_hand = {}, {}
    run = submit(api, "both")
    ends = threading.Thread(target=lambda: by_gate.update(finish(server, server.admin(), run, table(challenger=0.5, champion=1.0))))
    hand = threading.Thread(target=lambda: by_hand.update(status=server.admin().put(
        f"{BASE}/models/both/aliases/champion", {"version": 2, "force": True, "note": "by hand"}, headers=tag).status))
    try:
        with advisory_lock(server.database, 4712):
            ends.start()
            until(lambda: server.sql(waiting.format("=")), 30)
            hand.start()
            until(lambda: server.sql(waiting.format("<>")))
    finally:
        server.sql("DROP TRIGGER slowly ON model_alias; DROP FUNCTION slowly()")
    ends.join(30)
    hand.join(30)
    assert (by_gate["state"], by_hand["status"]) == ("succeeded", 412)
    assert version(api, "both", 3)["aliases"] == ["champion"]
    assert server.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == ["0"]


def test_a_retraining_that_fails_is_closed_and_due_again(server, api, data):
    world.model(server, "demo", "sad", data, level=1)
    pipeline(api, "sad")
    spec = {"subject": {"model": "sad"}, "columns": {"id": "id", "time": "t", "prediction": "p", "label": "y"},
            "window": {"size": "1d"}, "min_samples": 1, "performance": {"metric": "mae"},
            "policy": {"performance": {"action": "retrain", "k": 1, "n": 1}}, "retrain": {"pipeline": "sad"}}
    api.put(f"{BASE}/monitors/sad", {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": "sad"}, "spec": spec},
            expect=200)

    def hot(day):
        rows = "id,t,p,y\n" + "".join(f"{day}-{i},2021-01-{day:02d},{i + 9},{i}\n" for i in range(5))
        api.post(f"{BASE}/monitors/sad/observations", rows.encode(), headers={"Content-Type": "text/csv"}, expect=200)
        done = api.post(f"{BASE}/monitors/sad/windows/close", {"start": f"2021-01-{day:02d}T00:00:00Z"}, expect=200).json()
        return api.get(f"/api/v1/decisions/{done['decisions'][0]}", expect=200).json()

    first = hot(1)
    assert first["fired"] and first["run_id"], first
    second = hot(2)
    assert not second["fired"] and api.get(f"{BASE}/monitors/sad").json()["policy_state"]["open"] is True
    api.post(f"/api/v1/runs/{first['run_id']}/cancel", expect=200)
    until(lambda: server.sql("SELECT count(*) FROM retraining") == ["0"], 40, message=server.log)
    assert api.get(f"{BASE}/monitors/sad").json()["policy_state"]["open"] is False
    third = hot(3)
    assert third["fired"] and third["run_id"] != first["run_id"], third

    # A pipeline that cannot be launched is a decision too, and stays due.
    api.post(f"/api/v1/runs/{third['run_id']}/cancel", expect=200)
    until(lambda: server.sql("SELECT count(*) FROM retraining") == ["0"], 40)
    api.delete(f"{BASE}/pipelines/sad", expect=204)
    fourth = hot(4)
    assert (fourth["fired"], fourth["suppressed_by"]) == (False, "launch_failed"), fourth
    assert "could not be started: /pipeline: there is no pipeline" in fourth["reason"]
    # It names the input that the pipeline, put anew, does not have any more.
    pipeline(api, "sad")
    spec["retrain"]["inputs"] = {"to": "${window.end - 1d}"}
    api.put(f"{BASE}/monitors/sad", {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": "sad"}, "spec": spec},
            expect=200)
    source = PIPELINE % {"name": "sad", "outputs": ""}
    assert "inputs.to" in source and ", to: {" in source
    renamed = source.replace("inputs.to", "inputs.until").replace(", to: {", ", until: {")
    api.put(f"{BASE}/pipelines/sad", {"source": renamed}, expect=200)
    fifth = hot(5)
    assert (fifth["fired"], fifth["suppressed_by"]) == (False, "launch_failed"), fifth
    assert "could not be started: /inputs/to: is not an input of this pipeline" in fifth["reason"], fifth
    pipeline(api, "sad")
    assert hot(6)["fired"]


def test_a_promotion_that_makes_things_worse_is_taken_back(server, api, data):
    pipeline(api, "guarded")
    finish(server, api, submit(api, "guarded"), table(challenger=1.0))
    spec = {"subject": {"model": "guarded"}, "columns": {"id": "id", "time": "t", "prediction": "p", "label": "y"},
            "window": {"size": "1d"}, "min_samples": 1, "performance": {"metric": "mae"},
            "policy": {"performance": {"action": "alert", "k": 2, "n": 3}, "guard": {"windows": 3, "rollback": True}}}
    api.put(f"{BASE}/monitors/guarded", {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": "guarded"},
                                         "spec": spec}, expect=200)
    assert finish(server, api, submit(api, "guarded"), table(challenger=0.5, champion=1.0))["model_version"] == "guarded/2"
    monitor = api.get(f"{BASE}/monitors/guarded", expect=200).json()
    assert (monitor["champion"], monitor["policy_state"]["guard"]) == ("guarded/2", 3)
    rows = "id,t,p,y\n" + "".join(f"{i},2021-01-01,{i + 3},{i}\n" for i in range(10))
    api.post(f"{BASE}/monitors/guarded/observations", rows.encode(), headers={"Content-Type": "text/csv"}, expect=200)
    done = api.post(f"{BASE}/monitors/guarded/windows/close", {"start": "2021-01-01T00:00:00Z"}, expect=200).json()
    d = api.get(f"/api/v1/decisions/{done['decisions'][0]}", expect=200).json()
    assert (d["action"], d["fired"]) == ("rollback", True) and "is taken back" in d["reason"], d
    monitor = api.get(f"{BASE}/monitors/guarded", expect=200).json()
    assert monitor["champion"] == "guarded/1" and monitor["policy_state"]["guard"] == 0
    history = api.get(f"{BASE}/models/guarded/aliases", expect=200).json()["items"]
    assert [(h["number"], h["previous"], h["cause"]) for h in history] == [(1, 2, "rollback"), (2, 1, "gate"), (1, None, "gate")]

    # By hand again: the monitor starts over with what has the alias then.
    tag = api.get(f"{BASE}/models/guarded/aliases/champion", expect=200).headers["ETag"]
    api.put(f"{BASE}/models/guarded/aliases/champion", {"version": 2}, headers={"If-Match": tag}, expect=200)
    assert api.get(f"{BASE}/monitors/guarded", expect=200).json()["policy_state"]["guard"] == 3


def test_a_server_that_is_killed_ends_the_run_once(server, api, data):
    pipeline(api, "killed")
    runs = []
    for moment in (0, 0.05, 0.2, 0.5):
        runs.append(submit(api, "killed"))
        world.end_steps(server, api, "demo", runs[-1], {"train.model": MODEL, "evaluate.predictions": {"p.csv": table(challenger=1.0)}},
                        wait=False)
        time.sleep(moment)  # not a wait for anything: the moment of the kill
        server.kill()
        server.start()
    versions = sorted(world.ended(server, api, r)["model_version"] for r in runs)
    assert versions == [f"killed/{n}" for n in (1, 2, 3, 4)]
    assert server.sql("SELECT count(*) FROM model_version v JOIN model m ON m.id = v.model_id WHERE m.name = 'killed'") == ["4"]
