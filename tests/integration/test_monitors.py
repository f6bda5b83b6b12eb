"""Monitors through the API: files that are refused, rows and labels, windows by time and by rows, late data, mutes."""
import datetime
import gzip
import json
import socket
import subprocess

import pytest

import monitor_world as world
from harness import BUILD, SANITIZERS, until

BASE = "/api/v1/projects/demo"
CSV = {"Content-Type": "text/csv"}
NDJSON = {"Content-Type": "application/x-ndjson"}
YAML = {"Content-Type": "application/yaml"}


def day(n):
    """The nth day of 2020."""
    return (datetime.date(2020, 1, 1) + datetime.timedelta(days=n)).isoformat()


def training():
    """120 days: a measurement, a category, prose; what the model was trained on."""
    rows = ["date,temp,kind,note,y"]
    for i in range(120):
        rows.append(f"{day(i)},{10 + i % 17 + i * 0.01:.2f},{'abc'[i % 3]},{'a long note that nobody reads at all number ' + str(i)},{i % 5}")
    return ("\n".join(rows) + "\n").encode()


@pytest.fixture(scope="module")
def trained(server, api, project):
    version = world.dataset(api, project, "weather", {"part.csv": training(), "readme.md": b"not a table\n"})
    world.model(server, project, "weather", version, level=1.0)
    return version


def spec(name, **changes):
    s = {"subject": {"model": "weather"}, "columns": {"id": "id", "time": "t", "prediction": "p", "label": "y"},
         "window": {"size": "1d"}, "min_samples": 1, "performance": {"metric": "mae"},
         "policy": {"performance": {"action": "alert"}, "data_quality": {"action": "block"}}}
    s.update(changes)
    return {"apiVersion": "tidemill/v1", "kind": "Monitor", "metadata": {"name": name}, "spec": s}


def put(api, name, expect=200, **changes):
    return api.put(f"{BASE}/monitors/{name}", json.dumps({k: v for k, v in spec(name, **changes).items()}).encode(),
                   headers=YAML, expect=expect).json()


def send(api, name, rows, batch=None, expect=200, what="observations", head=CSV):
    url = f"{BASE}/monitors/{name}/{what}" + (f"?batch={batch}" if batch else "")
    return api.post(url, rows if isinstance(rows, bytes) else "\n".join(rows).encode(), headers=head, expect=expect).json()


def rows_of(d, n, first=0, label=True, temp=15, kind="a"):
    """n rows of one day, half a point off when labelled."""
    out = []
    for i in range(first, first + n):
        out.append(f"{d}-{i},{d}T{i // 60 % 24:02d}:{i % 60:02d}:00Z,{i + 0.5},{i if label else ''},{temp},{kind}")
    return out


HEADER = "id,t,p,y,temp,kind"


def windows(api, name):
    return {w["start"][:10]: w for w in api.get(f"{BASE}/monitors/{name}/windows?limit=100", expect=200).json()["items"]}


BAD = [
    ({"window": {"size": "1d", "rows": 100}}, "/spec/window"),
    ({"window": {}}, "/spec/window"),
    ({"window": {"size": "1mo2d"}}, "/spec/window/size"),
    ({"window": {"rows": 9}}, "/spec/window/rows"),
    ({"subject": {"model": "nobody"}}, "/spec/subject/model"),
    ({"subject": {"model": "Not A Name"}}, "/spec/subject/model"),
    ({"columns": {"id": "t", "time": "t", "prediction": "p"}}, "/spec/columns/time"),
    ({"columns": {"id": "id", "time": "t", "prediction": "p"}}, "/spec/columns/label"),
    ({"features": {"types": {"temp": "colour"}}}, "/spec/features/types"),
    ({"features": {"weights": {"temp": -1}}}, "/spec/features/weights"),
    ({"tests": {"warn": 0.3, "alert": 0.2}}, "/spec/tests/warn"),
    ({"tests": {"categorical": "ks"}}, "/spec/tests/categorical"),
    ({"policy": {"performance": {"k": 3, "n": 2}}}, "/spec/policy/performance/k"),
    ({"policy": {"performance": {"action": "retrain"}}}, "/spec/retrain"),
    ({"policy": {"data_quality": {"action": "retrain"}}}, "/spec/policy/data_quality/action"),
    ({"policy": {"drift": {"share": 0.1, "clear": 0.2}}}, "/spec/policy/drift/clear"),
    ({"policy": {"performance": {}}, "performance": None}, "/spec/performance"),
    ({"retrain": {"pipeline": "nothing"}}, "/spec/retrain/pipeline"),
    ({"retrain": {"pipeline": "p", "inputs": {"from": "${window.begin}"}}}, "/spec/retrain/inputs/from"),
    ({"baselines": {"seasonal": "none"}}, "/spec/baselines"),
]


@pytest.mark.parametrize("changes,pointer", BAD)
def test_a_file_that_is_refused_names_the_place(api, trained, changes, pointer):
    r = put(api, "bad", expect=422, **changes)
    assert r["errors"][0]["pointer"] == pointer, r
    api.get(f"{BASE}/monitors/bad", expect=404)


PIPELINE = """
apiVersion: tidemill/v1
kind: Pipeline
metadata: {name: taking}
spec:
  inputs: {from: {type: date}, alpha: {type: number, default: 1.0, max: 9}}
  steps: {train: {run: ["true"]}}
"""


@pytest.mark.parametrize("inputs,name,words", [
    ({"from": "${window.start - 3y}", "form": "1"}, "form", "is not an input of this pipeline; did you mean 'from'?"),
    ({"alpha": "1"}, "from", "must be given: it is a date"),
    ({}, "from", "must be given: it is a date"),
    ({"from": "${window.start}", "alpha": "many"}, "alpha", "must be a number"),
    ({"from": "${window.start}", "alpha": "10"}, "alpha", "must be at most 9"),
])
def test_inputs_that_the_pipeline_does_not_take_are_refused(api, trained, inputs, name, words):
    api.put(f"{BASE}/pipelines/taking", {"source": PIPELINE}, expect=200)
    r = put(api, "giving", expect=422, retrain={"pipeline": "taking", "inputs": inputs})
    assert r["errors"][0]["pointer"] == f"/spec/retrain/inputs/{name}", r
    assert words in str(r["errors"]), r
    api.get(f"{BASE}/monitors/giving", expect=404)


def test_inputs_that_the_pipeline_takes_are_accepted(api, trained):
    api.put(f"{BASE}/pipelines/taking", {"source": PIPELINE}, expect=200)
    put(api, "given", retrain={"pipeline": "taking", "inputs": {"from": "${window.start - 3y}", "alpha": "0.5"}})
    put(api, "given", retrain={"pipeline": "taking", "inputs": {"from": "${window.end - 1d}"}})
    api.delete(f"{BASE}/monitors/given", expect=204)


def test_put_get_list_replace_delete(api, trained):
    made = put(api, "life")
    assert made["champion"] == "weather/1" and made["alias"] == "champion" and made["version"] == 1
    assert put(api, "life", min_samples=5)["version"] == 2
    assert "life" in [m["name"] for m in api.get(f"{BASE}/monitors", expect=200).json()["items"]]
    send(api, "life", [HEADER, *rows_of("2021-01-01", 3)])
    assert put(api, "life", window={"size": "1h"}, expect=422)["errors"][0]["pointer"] == "/spec/window"
    wrong = api.put(f"{BASE}/monitors/other", json.dumps(spec("life")).encode(), headers=YAML, expect=422).json()
    assert wrong["errors"][0]["pointer"] == "/metadata/name"
    assert api.delete(f"{BASE}/models/weather").status == 409
    api.delete(f"{BASE}/monitors/life", expect=204)
    assert api.delete(f"{BASE}/monitors/life").status == 404
    for path in ("windows", "decisions", "heat"):
        api.get(f"{BASE}/monitors/life/{path}", expect=404)


def test_windows_close_by_themselves_when_later_rows_come(api, trained):
    put(api, "time")
    assert send(api, "time", [HEADER, *rows_of("2021-01-01", 5), *rows_of("2021-01-02", 4)])["windows"] == 2
    until(lambda: windows(api, "time")["2021-01-01"]["state"] == "closed")
    w = windows(api, "time")
    assert w["2021-01-02"]["state"] == "open" and w["2021-01-01"]["rows"] == w["2021-01-01"]["labelled"] == 5
    assert w["2021-01-01"]["performance"] == 0.5 and w["2021-01-01"]["severity"] == "ok"
    assert w["2021-01-01"]["reason"].startswith("The error (mae) of window 2021-01-01 to 2021-01-02 was 0.5")
    done = api.post(f"{BASE}/monitors/time/windows/close", {"before": "2021-01-03T00:00:00Z"}, expect=200).json()
    assert done["closed"] == 1 and len(done["decisions"]) == 2
    again = api.post(f"{BASE}/monitors/time/windows/close", {"before": "2021-01-03T00:00:00Z"}, expect=200).json()
    assert again == {"closed": 0, "decisions": []}
    api.post(f"{BASE}/monitors/time/windows/close", {}, expect=422)


@pytest.mark.parametrize("metric, value", [("mae", 0.5), ("rmse", 0.5)])
def test_rows_that_are_too_large_to_be_measured_are_told(api, trained, metric, value):
    name = f"huge-{metric}"
    put(api, name, performance={"metric": metric}, min_samples=3)
    huge = ["h1,2021-01-01T12:00:00Z,1e308,-1e308,15,a", "h2,2021-01-01T12:00:00Z,1e160,0,15,a"]
    send(api, name, [HEADER, *rows_of("2021-01-01", 4), *huge, *rows_of("2021-01-02", 2), "h3,2021-01-02T12:00:00Z,-1e300,1,15,a"])
    api.post(f"{BASE}/monitors/{name}/windows/close", {"before": "2021-01-03T00:00:00Z"}, expect=200)
    first, second = until(lambda: [w for d, w in sorted(windows(api, name).items()) if w["state"] == "closed"][:2], 20)
    assert (first["rows"], first["labelled"], first["left_out"], first["performance"]) == (6, 6, 2, value), first
    assert "2 rows with a label were left out" in first["reason"] and "1e+75" in first["reason"]
    metrics = api.get(f"{BASE}/monitors/{name}/windows/{first['id']}/metrics", expect=200).json()["items"]
    whole = {m["metric"]: (m["value"], m["status"]) for m in metrics if m["feature"] == ""}
    assert whole["left_out_count"] == (2.0, "ok") and whole[metric] == (value, "partial") and whole["label_count"][0] == 6.0
    # What is left is too little to judge by.
    assert second["severity"] == "insufficient" or metric == "rmse"  # of which the version has no level
    assert second["left_out"] == 1 and "1 row with a label was left out" in second["reason"]


def test_late_rows_and_labels_open_a_window_again(api, trained):
    put(api, "late", late="2d")
    first = rows_of("2021-02-01", 4, label=False)
    send(api, "late", [HEADER, *first, *rows_of("2021-02-02", 1)])
    until(lambda: windows(api, "late")["2021-02-01"]["revision"] == 1)
    assert windows(api, "late")["2021-02-01"]["performance"] is None
    labels = ["id,y", *(f"2021-02-01-{i},{i}" for i in range(3)), "nobody,1"]
    r = send(api, "late", labels, what="labels")
    assert (r["rows"], r["unknown"], r["duplicates"], r["reopened"]) == (3, 1, 0, 1)
    until(lambda: windows(api, "late")["2021-02-01"]["revision"] == 2)
    w = windows(api, "late")["2021-02-01"]
    assert w["labelled"] == 3 and w["performance"] == 0.5
    assert send(api, "late", labels, what="labels")["duplicates"] == 3
    r = send(api, "late", [HEADER, *rows_of("2021-02-01", 6)])
    assert (r["rows"], r["duplicates"], r["late"], r["reopened"]) == (2, 4, 0, 1)
    until(lambda: windows(api, "late")["2021-02-01"]["revision"] == 3)
    decisions = [d for d in api.get(f"{BASE}/monitors/late/decisions", expect=200).json()["items"]
                 if d["window_start"][:10] == "2021-02-01" and d["cause"] == "performance"]
    assert [d["revision"] for d in decisions] == [3, 2, 1] and {d["project"] for d in decisions} == {"demo"}
    assert api.get(f"/api/v1/decisions/{decisions[0]['id']}", expect=200).json() == decisions[0]
    assert [d.get("supersedes", "") for d in decisions] == [decisions[1]["id"], decisions[2]["id"], ""]
    send(api, "late", [HEADER, *rows_of("2021-02-05", 1)])
    r = send(api, "late", [HEADER, *rows_of("2021-02-01", 8), *rows_of("2021-01-15", 2)])
    assert (r["rows"], r["duplicates"], r["late"]) == (0, 6, 4) and r["horizon"] == "2021-02-03T00:00:00Z"
    r = send(api, "late", ["id,t,y", "2021-02-01-3,2021-02-01,3"], what="labels")
    assert (r["rows"], r["late"]) == (0, 1)


def from_now(**span):
    """A date that lies so far ahead of the clock."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**span)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_row_beyond_the_clock_is_refused(server, api, trained):
    put(api, "far")
    for when in ("9999-12-31", "9999-01-01T00:00:00Z", from_now(days=2, minutes=2), from_now(days=4000)):
        for lines, head, line in (([HEADER, *rows_of("2021-01-01", 3), f"x,{when},1,1,1,a"], CSV, 5),
                                  ([json.dumps({"id": "x", "t": when, "p": 1})], NDJSON, 1)):
            r = send(api, "far", lines, head=head, expect=422)
            assert r["errors"][0]["pointer"] == f"/{line}/t" and f"line {line}, column t: must be at most 20" in r["detail"], r
            assert "(the server's clock, one window and ahead: 1d), not" in r["detail"] and when in r["detail"]
    r = send(api, "far", ["id,t,y", "x,9999-12-31,1"], what="labels", expect=422)
    assert r["errors"][0]["pointer"] == "/2/t"
    assert windows(api, "far") == {}
    assert send(api, "far", [HEADER, f"x,{from_now(days=1, hours=23)},1,1,1,a"])["rows"] == 1
    put(api, "far", ahead="30d")
    assert send(api, "far", [HEADER, f"y,{from_now(days=30)},1,1,1,a"])["rows"] == 1
    put(api, "far-rows", window={"rows": 10}, ahead="2h")
    r = send(api, "far-rows", [HEADER, f"x,{from_now(hours=3)},1,1,1,a"], expect=422)
    assert "(the server's clock and ahead: 2h), not" in r["detail"], r
    for late in ("1001y", "999999y"):
        assert put(api, "far", late=late, expect=422)["errors"][0]["pointer"] == "/spec/late"
    put(api, "edge", window={"size": "5d"})
    assert "within the years 1 to 9999" in send(api, "edge", [HEADER, "x,0001-01-01,1,1,1,a"], expect=422)["detail"]
    until(lambda: server.sql("SELECT count(*) FROM observation_stage") == ["0"])


def test_rows_of_tomorrow_make_nothing_late_today(api, trained):
    put(api, "tomorrow")
    days = [from_now(days=d)[:10] for d in (-2, -1, 0, 1)]
    send(api, "tomorrow", [HEADER, *rows_of(days[0], 2), *rows_of(days[3], 5)])
    until(lambda: windows(api, "tomorrow")[days[0]]["state"] == "closed")
    r = send(api, "tomorrow", [HEADER, *(f"{i},{from_now(minutes=-1)},1,1,1,a" for i in range(3))])
    assert (r["rows"], r["late"]) == (3, 0)
    assert windows(api, "tomorrow")[from_now(minutes=-1)[:10]]["state"] == "open"
    assert windows(api, "tomorrow")[days[3]]["state"] == "open"


def test_few_rows_far_ahead_make_nothing_late(api, trained):
    put(api, "jump", min_samples=4)
    send(api, "jump", [HEADER, *rows_of("2021-01-01", 5), *rows_of("2021-01-02", 5)])
    until(lambda: windows(api, "jump")["2021-01-01"]["state"] == "closed")
    assert send(api, "jump", [HEADER, *rows_of("2024-06-01", 3)])["windows"] == 1  # a wrong year, three times
    r = send(api, "jump", [HEADER, *rows_of("2021-01-02", 7, first=5), *rows_of("2021-01-03", 1)])
    assert (r["rows"], r["late"], r["reopened"]) == (8, 0, 0)
    until(lambda: windows(api, "jump")["2021-01-02"]["state"] == "closed")  # by the row of the day after
    w = windows(api, "jump")
    assert w["2021-01-03"]["state"] == w["2024-06-01"]["state"] == "open" and w["2021-01-02"]["rows"] == 12
    # One row of the 3rd closes the 2nd, but is too little to make rows of the 2nd late, although late is 0.
    r = send(api, "jump", [HEADER, *rows_of("2021-01-02", 1, first=20)])
    assert (r["rows"], r["late"], r["reopened"]) == (1, 0, 1)
    # A day is left out: few rows behind the gap do not close what is before it, enough do.
    send(api, "jump", [HEADER, *rows_of("2021-01-05", 1)])
    assert windows(api, "jump")["2021-01-03"]["state"] == "open"
    # With the three of 2024 there are four behind the gap, and four behind the next one with a row more there.
    assert send(api, "jump", [HEADER, *rows_of("2021-01-05", 3, first=1)])["late"] == 0
    until(lambda: windows(api, "jump")["2021-01-03"]["state"] == "closed")
    assert windows(api, "jump")["2021-01-05"]["state"] == "open"
    assert api.get(f"{BASE}/monitors/jump", expect=200).json()["late_rows"] == 0


def test_enough_rows_far_ahead_are_said_and_can_be_taken_back(server, api, trained):
    put(api, "back", min_samples=4, late="1d")
    send(api, "back", [HEADER, *rows_of("2021-01-01", 5), *rows_of("2021-01-02", 5)])
    until(lambda: windows(api, "back")["2021-01-01"]["state"] == "closed")
    state = api.get(f"{BASE}/monitors/back", expect=200).json()["policy_state"]
    wrong = [HEADER, *rows_of("2024-06-01", 4)]
    assert send(api, "back", wrong, batch="wrong")["rows"] == 4
    until(lambda: windows(api, "back")["2021-01-02"]["state"] == "closed")
    late = [HEADER, *rows_of("2021-01-03", 5)]
    r = send(api, "back", late, batch="late")
    assert (r["rows"], r["late"], r["windows"]) == (0, 5, 0) and r["horizon"].startswith("2024-05-31T")
    assert api.get(f"{BASE}/monitors/back", expect=200).json()["late_rows"] == 5
    done = api.post(f"{BASE}/monitors/back/windows/close", {"start": "2024-06-01T00:00:00Z"}, expect=200).json()
    assert len(done["decisions"]) == 2

    url = f"{BASE}/monitors/back/windows/delete"
    assert api.post(url, {}, expect=422).json()["detail"] == "give either start, or from and to"
    api.post(url, {"from": "2024-01-01T00:00:00Z"}, expect=422)
    api.post(url, {"start": "2024-06-01T00:00:00Z", "to": "2024-06-01T00:00:00Z"}, expect=422)
    api.post(url, {"from": "2024-06-02T00:00:00Z", "to": "2024-06-01T00:00:00Z"}, expect=422)
    would = api.post(f"{url}?dry_run=true", {"from": "2024-01-01T00:00:00Z", "to": "2025-01-01T00:00:00Z"}, expect=200).json()
    assert would == {"windows": 1, "rows": 4, "decisions": 2, "dry_run": True}
    assert "2024-06-01" in windows(api, "back")
    none = api.post(url, {"start": "2024-07-01T00:00:00Z"}, expect=200).json()
    assert none == {"windows": 0, "rows": 0, "decisions": 0, "dry_run": False}
    # What lies partly outside stays.
    assert api.post(url, {"from": "2024-06-01T00:00:00Z", "to": "2024-06-01T23:00:00Z"}, expect=200).json()["windows"] == 0
    gone = api.post(url, {"start": "2024-06-01T00:00:00Z"}, expect=200).json()
    assert gone == {"windows": 1, "rows": 4, "decisions": 2, "dry_run": False}
    assert list(windows(api, "back")) == ["2021-01-02", "2021-01-01"]
    api.get(f"/api/v1/decisions/{done['decisions'][0]}", expect=404)
    assert server.sql("SELECT count(*) FROM observation o JOIN monitor_window w ON w.id = o.window_id JOIN monitor m ON m.id = w.monitor_id"
                      " WHERE m.name = 'back'") == ["10"]
    assert server.sql("SELECT count(*) FROM observation o WHERE NOT EXISTS (SELECT FROM monitor_window w WHERE w.id = o.window_id)") == ["0"]
    told = server.sql("SELECT actor IS NOT NULL, data ->> 'windows', data ->> 'from' FROM event WHERE type = 'monitor.windows_deleted'")
    assert told == ["t|1|2024-06-01T00:00:00.000000Z"]

    # Time stands where it stood, and what was late comes in when it is sent again.
    r = send(api, "back", late, batch="late")
    assert (r["rows"], r["late"], r["replayed"]) == (5, 0, False)
    assert send(api, "back", wrong, batch="wrong")["replayed"] is False
    # The policy's state is the one before the windows that it saw last.
    api.post(url, {"from": "2021-01-02T00:00:00Z", "to": "2030-01-01T00:00:00Z"}, expect=200)
    assert api.get(f"{BASE}/monitors/back", expect=200).json()["policy_state"] == state
    assert list(windows(api, "back")) == ["2021-01-01"]


def test_the_command_line_says_what_was_left_out(server, api, trained, tmp_path):
    put(api, "told", min_samples=2)
    env = {"XDG_CONFIG_HOME": str(tmp_path), "TIDEMILL_SERVER": f"http://127.0.0.1:{server.port}", "TIDEMILL_TOKEN": server.token,
           "TIDEMILL_PROJECT": "demo", **SANITIZERS}

    def cli(*args, expect=0):
        done = subprocess.run([BUILD / "tidemill", "monitor", *args], env=env, text=True, capture_output=True, timeout=60)
        assert done.returncode == expect, done
        return done

    def observe(*rows, what="observe"):
        (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
        done = cli(what, "told", str(tmp_path / "rows.csv"))
        return dict(line.split("\t") for line in done.stdout.splitlines()), done.stderr

    said, warned = observe(HEADER, *rows_of("2021-01-01", 3), *rows_of("2024-01-01", 2))
    assert (said["ROWS"], said["LATE"], warned) == ("5", "0", "")
    until(lambda: windows(api, "told")["2021-01-01"]["state"] == "closed")
    said, warned = observe(HEADER, *rows_of("2021-01-01", 2, first=2))
    assert (said["ROWS"], said["DUPLICATES"], said["LATE"], said["REOPENED"]) == ("0", "1", "1", "0")
    assert warned == "Warning: too late and left out: 1, of windows that ended before 2024-01-01T00:01:00Z\n"
    (tmp_path / "wrong.csv").write_text("\n".join([HEADER, *rows_of("2021-01-01", 1), "x"]) + "\n")
    assert f"not valid: {tmp_path}/wrong.csv: line 3 has 1 cell, the header has" in cli("observe", "told", tmp_path / "wrong.csv", expect=2).stderr
    assert "wrong.csv" not in cli("observe", "none", tmp_path / "wrong.csv", expect=3).stderr
    packed, plain = tmp_path / "rows.csv.gz", (tmp_path / "rows.csv").read_bytes()
    packed.write_bytes(gzip.compress(plain[:100]) + gzip.compress(plain[100:]))  # two members are one file
    again = dict(line.split("\t") for line in cli("observe", "told", packed).stdout.splitlines())
    assert [again[k] for k in ("ROWS", "DUPLICATES", "LATE")] == [said[k] for k in ("ROWS", "DUPLICATES", "LATE")]  # as the same batch
    packed.write_bytes(gzip.compress(plain)[:-9])
    assert f"{packed}: the gzip file is cut" in cli("observe", "told", packed, expect=2).stderr
    packed.write_bytes(plain)
    assert f"{packed}: not a whole gzip file" in cli("labels", "told", packed, expect=2).stderr
    (tmp_path / "labels.ndjson.gz").write_bytes(gzip.compress(b'{"id": "nobody", "y": 1}\n'))
    assert "labels of rows that are not there: 1" in cli("labels", "told", tmp_path / "labels.ndjson.gz").stderr
    said, warned = observe("id,y", "nobody,1", what="labels")
    assert (said["ROWS"], said["UNKNOWN"]) == ("0", "1") and warned == "Warning: labels of rows that are not there: 1\n"

    assert "give --start, or --from and --to" in cli("forget", "told", "--from", "2024-01-01", expect=2).stderr
    for more in (["--yes"], ["--dry-run"]):
        gone = cli("forget", "told", "--start", "1999-01-01", *more, expect=3)
        assert "no window of the monitor starts at 1999-01-01" in gone.stderr and gone.stdout == ""
    would = cli("forget", "told", "--start", "2024-01-01", "--dry-run").stdout
    assert would.splitlines() == ["WINDOWS\t1", "ROWS\t2", "DECISIONS\t0", "DRY RUN\tyes"]
    asked = cli("forget", "told", "--start", "2024-01-01", expect=2).stderr
    assert "so give --yes to forget 1 window with 2 rows and 0 decisions" in asked
    cli("forget", "told", "--from", "2024-01-01", "--to", "2024-01-02", "--yes")
    said, warned = observe(HEADER, *rows_of("2021-01-01", 2, first=2))
    assert (said["ROWS"], said["LATE"], said["REOPENED"], warned) == ("1", "0", "1", "")


def test_a_dry_put_of_a_monitor_writes_nothing(server, api, trained):
    def dry(**changes):
        body = json.dumps(spec("dry", **changes)).encode()
        return api.put(f"{BASE}/monitors/dry?dry_run=true", body, headers=YAML, expect=200).json()

    def plain(monitor):
        return {k: v for k, v in monitor.items() if k not in ("id", "created_at")}

    would = dry()
    api.get(f"{BASE}/monitors/dry", expect=404)
    made = put(api, "dry")
    assert would["id"] == "" and plain(would) == plain(made) and made["champion"] != ""
    assert dry() == made
    would = dry(min_samples=7)
    assert api.get(f"{BASE}/monitors/dry").json() == made
    changed = put(api, "dry", min_samples=7)
    assert would == changed and changed["version"] > made["version"]


def test_a_monitor_is_applied_with_the_pipeline_that_it_needs(server, api, trained, tmp_path):
    env = {"XDG_CONFIG_HOME": str(tmp_path), "TIDEMILL_SERVER": f"http://127.0.0.1:{server.port}", "TIDEMILL_TOKEN": server.token,
           "TIDEMILL_PROJECT": "demo", **SANITIZERS}
    monitor = spec("both", policy={"performance": {"action": "retrain", "k": 1, "n": 1}}, retrain={"pipeline": "both"})
    pipeline = {"apiVersion": "tidemill/v1", "kind": "Pipeline", "metadata": {"name": "both"}, "spec": {"steps": {"s": {"run": ["true"]}}}}

    def apply(*documents):
        (tmp_path / "all.yaml").write_text("\n---\n".join(json.dumps(d) for d in documents))
        return subprocess.run([BUILD / "tidemill", "apply", "-f", tmp_path / "all.yaml"], env=env, text=True, capture_output=True, timeout=60)

    late = apply(monitor, pipeline)
    assert late.returncode == 2 and "/spec/retrain/pipeline: there is no pipeline" in late.stderr
    api.get(f"{BASE}/pipelines/both", expect=404)
    done = apply(pipeline, monitor)
    assert (done.returncode, done.stderr) == (0, "pipeline both created\nmonitor both created\n")
    pipeline["spec"]["inputs"] = {"word": {"type": "string"}}
    monitor["spec"]["retrain"]["inputs"] = {"word": "new"}
    alone = apply(monitor)
    assert alone.returncode == 2 and "/spec/retrain/inputs/word: " in alone.stderr
    assert apply(pipeline, monitor).returncode == 0  # an input that the first one brings


def test_a_window_that_started_a_retraining_stays(server, api, trained):
    world.model(server, "demo", "keeper", trained, level=1.0)
    api.put(f"{BASE}/pipelines/keeper", {"source": json.dumps(
        {"apiVersion": "tidemill/v1", "kind": "Pipeline", "metadata": {"name": "keeper"}, "spec": {"steps": {"s": {"run": ["true"]}}}})},
        expect=200)
    put(api, "keeper", subject={"model": "keeper"}, policy={"performance": {"action": "retrain", "k": 1, "n": 1}},
        retrain={"pipeline": "keeper"})
    send(api, "keeper", [HEADER, *(f"{i},2021-01-01,{i + 9},{i},1,a" for i in range(5))])
    done = api.post(f"{BASE}/monitors/keeper/windows/close", {"start": "2021-01-01T00:00:00Z"}, expect=200).json()
    decision = api.get(f"/api/v1/decisions/{done['decisions'][0]}", expect=200).json()
    assert decision["run_id"]
    url = f"{BASE}/monitors/keeper/windows/delete"
    would = api.post(f"{url}?dry_run=true", {"start": "2021-01-01T00:00:00Z"}, expect=200).json()
    assert would == {"windows": 1, "rows": 5, "decisions": 1, "held_by": decision["id"], "dry_run": True}
    r = api.post(url, {"start": "2021-01-01T00:00:00Z"}, expect=409).json()
    assert decision["id"] in r["detail"]
    assert windows(api, "keeper")["2021-01-01"]["rows"] == 5


def test_a_window_with_rows_of_many_champions_and_columns_is_closed(server, api, project):
    """Each champion has a reference of its own, of which the rows that were written under it take the shape only."""
    columns = [f"c{i}" for i in range(512)]
    values = [",".join(value + str(i) for i in range(512)) for value in "abc"]
    table = [f"date,{','.join(columns)}"] + [f"{day(n)},{values[n % 3]}" for n in range(6)]
    version = world.dataset(api, project, "wide", {"t.csv": ("\n".join(table) + "\n").encode()})
    champions = 26
    world.model(server, "demo", "wide", version, level=1.0)
    put(api, "wide", subject={"model": "wide"}, window={"size": "1q"}, features={"types": {"*": "category"}})
    for n in range(1, champions + 1):
        if n > 1:
            made = world.model(server, "demo", "wide", version, number=n, level=1.0, alias=None)
            server.sql(f"SELECT alias_move('mdl_wide', 'champion', '{made}', 'mv_wide_{n - 1}', 'api', '', NULL)")
        send(api, "wide", [f"id,t,p,y,{','.join(columns)}", f"r{n},2021-01-02,1,2,{values[n % 3]}"])
    api.post(f"{BASE}/monitors/wide/windows/close", {"before": "2021-04-01T00:00:00Z"}, expect=200)
    [w] = windows(api, "wide").values()
    assert (w["state"], w["rows"]) == ("closed", champions)
    assert server.sql("SELECT count(DISTINCT layout) FROM observation o JOIN monitor_window w ON w.id = o.window_id"
                      " JOIN monitor m ON m.id = w.monitor_id WHERE m.name = 'wide'") == [str(champions)]


def test_windows_by_rows_that_are_taken_away(api, trained):
    put(api, "count-back", window={"rows": 10}, min_samples=5)
    send(api, "count-back", [HEADER, *rows_of("2021-01-01", 14)])
    until(lambda: [w for w in api.get(f"{BASE}/monitors/count-back/windows").json()["items"] if w["state"] == "closed"])
    gone = api.post(f"{BASE}/monitors/count-back/windows/delete", {"start": "2021-01-01T00:10:00Z"}, expect=200).json()
    assert gone["rows"] == 4
    send(api, "count-back", [HEADER, *rows_of("2021-01-02", 10)])
    items = until(lambda: [w for w in api.get(f"{BASE}/monitors/count-back/windows").json()["items"] if w["state"] == "closed"][1:] and
                  api.get(f"{BASE}/monitors/count-back/windows").json()["items"])
    assert [w["rows"] for w in items] == [10, 10]
    # A label is late when a later window has enough rows; one row far ahead does not make it so.
    put(api, "count-late", window={"rows": 10}, min_samples=5)
    rows = rows_of("2021-01-01", 10, label=False)
    send(api, "count-late", [HEADER, *rows, *rows_of("2021-01-01", 3, first=10), *rows_of("2024-01-01", 1)])
    until(lambda: [w for w in api.get(f"{BASE}/monitors/count-late/windows").json()["items"] if w["state"] == "closed"])
    assert send(api, "count-late", ["id,y", "2021-01-01-1,1"], what="labels")["rows"] == 1
    send(api, "count-late", [HEADER, *rows_of("2024-01-01", 16, first=1)])
    r = send(api, "count-late", ["id,y", "2021-01-01-2,1"], what="labels")
    assert (r["rows"], r["late"]) == (0, 1) and r["horizon"].startswith("2024-01-01")


def test_windows_by_rows(api, trained):
    put(api, "count", window={"rows": 10})
    r = send(api, "count", [HEADER, *rows_of("2021-01-01", 7)])
    assert r["windows"] == 1
    r = send(api, "count", [HEADER, *rows_of("2021-01-01", 24, first=5)])  # two are there already
    assert (r["rows"], r["duplicates"], r["windows"]) == (22, 2, 3)
    items = until(lambda: [w for w in api.get(f"{BASE}/monitors/count/windows", expect=200).json()["items"]
                           if w["state"] == "closed"][1:] and api.get(f"{BASE}/monitors/count/windows").json()["items"])
    assert [(w["rows"], w["state"]) for w in items] == [(9, "open"), (10, "closed"), (10, "closed")]


def test_a_batch_is_taken_once(api, trained):
    put(api, "batch")
    rows = [HEADER, *rows_of("2021-01-01", 3)]
    first = send(api, "batch", rows, batch="b1")
    assert send(api, "batch", rows, batch="b1") == {**first, "replayed": True}
    other = send(api, "batch", [*rows, *rows_of("2021-01-01", 1, first=9)], batch="b1", expect=422)
    assert "batch was used before" in other["detail"] and other["errors"][0]["pointer"] == "/batch"
    r = api.post(f"{BASE}/monitors/batch/observations", "\n".join(rows).encode(),
                 headers={**CSV, "Idempotency-Key": "b1"}, expect=200).json()
    assert r["replayed"] is True
    assert windows(api, "batch")["2021-01-01"]["rows"] == 3


BAD_ROWS = [
    (["id,t,p", "1,2021-01-01"], "/2", "line 2 has 2 cells"),
    (["id,p", "1,2"], "/1/t", "the header lacks the column t"),
    (["id,t,p", "1,yesterday,2"], "/2/t", "line 2, column t"),
    (["id,t,p", "1,2021-01-01,2", "2,2021-01-01,x"], "/3/p", "line 3, column p"),
    (["id,t,p", ",2021-01-01,2"], "/2/id", "line 2, column id"),
    (["id,t,p", "1,2021-01-01,"], "/2/p", "line 2, column p"),
    (["id,t,p,temp", "1,2021-01-01,1,warm"], "/2/temp", "line 2, column temp"),
    (["id,t,p", '1,2021-01-01,"2'], "/2", "line 2: a quote is not closed"),
    ([""], "/1", "no header"),
]


@pytest.mark.parametrize("rows,pointer,message", BAD_ROWS)
def test_bad_rows_are_refused_whole(server, api, trained, rows, pointer, message):
    put(api, "bad-rows")
    good = rows_of("2021-01-01", 9000) if rows[0] == "id,t,p" and len(rows) == 3 else []
    lines = [rows[0], *(",".join(r.split(",")[:3]) for r in good), *rows[1:]]
    r = send(api, "bad-rows", lines, expect=422)
    assert message.replace("line 3", f"line {3 + len(good)}") in r["detail"], r
    assert r["errors"][0]["pointer"] == pointer.replace("/3", f"/{3 + len(good)}"), r
    assert windows(api, "bad-rows") == {}
    until(lambda: server.sql("SELECT count(*) FROM observation_stage") == ["0"])


def test_bad_requests_for_rows(api, trained):
    put(api, "odd")
    api.post(f"{BASE}/monitors/odd/observations", b"{}", headers={"Content-Type": "application/json"}, expect=415)
    send(api, "nobody", [HEADER], expect=404)
    send(api, "odd", [HEADER], batch="x" * 256, expect=422)
    assert send(api, "odd", [HEADER])["rows"] == 0


def test_ndjson_and_what_is_missing(api, trained):
    put(api, "nd")
    lines = [json.dumps({"id": f"r{i}", "t": "2021-03-01T00:00:00Z", "p": i, "y": i + 1, "temp": None, "kind": "z"})
             for i in range(300)]
    assert send(api, "nd", lines, head=NDJSON)["rows"] == 300
    done = api.post(f"{BASE}/monitors/nd/windows/close", {"start": "2021-03-01T00:00:00Z"}, expect=200).json()
    by = {d["cause"]: d for d in (api.get(f"/api/v1/decisions/{i}").json() for i in done["decisions"])}
    quality = by["data_quality"]
    assert quality["action"] == "block" and quality["fired"] is True
    assert {d["what"] for d in quality["inputs"]["defects"]} == {"missing_rate of temp", "new_category_rate of kind"}
    w = windows(api, "nd")["2021-03-01"]
    metrics = {(m["feature"], m["metric"]): m for m in
               api.get(f"{BASE}/monitors/nd/windows/{w['id']}/metrics", expect=200).json()["items"]}
    assert metrics["temp", "missing_rate"]["value"] == 1 and metrics["temp", "psi"]["status"] == "all_missing"
    assert metrics["kind", "new_category_rate"]["value"] == 1 and metrics["", "mae"]["value"] == 1
    assert not any(f == "note" for f, _ in metrics)  # prose is not watched
    bad = send(api, "nd", [json.dumps({"id": 1, "t": "2021-03-01", "p": []})], head=NDJSON, expect=422)
    assert "line 1, column p" in bad["detail"]


def test_a_mute_too_many_is_refused_and_leaves_the_others(server, api, trained):
    put(api, "full")
    server.sql("""UPDATE monitor SET mutes = (SELECT jsonb_agg(jsonb_build_object('feature', 'f' || i, 'until', '2022-01-01T00:00:00Z',
        'reason', repeat('x', 1000))) FROM generate_series(1, 980) i) WHERE name = 'full'""")
    for i in range(20):
        mute = {"feature": f"g{i}", "until": "2022-01-01T00:00:00Z", "reason": "y" * 1000}
        reply = api.post(f"{BASE}/monitors/full/mutes", mute, expect=(200, 413))
        if reply.status == 413:
            break
    assert reply.status == 413 and "1048576 bytes" in reply.json()["detail"]
    mutes = api.get(f"{BASE}/monitors/full", expect=200).json()["mutes"]
    assert len(mutes) == 980 + i and mutes[0]["feature"] == "f1"


def test_a_mute_silences_a_feature_and_the_monitor(api, trained):
    put(api, "mute", policy={"performance": {"action": "alert", "max_ratio": 1.1, "clear_ratio": 1, "k": 1, "n": 1},
                             "data_quality": {"action": "block"}})
    api.post(f"{BASE}/monitors/mute/mutes", {"feature": "temp", "until": "2022-01-01T00:00:00Z", "reason": "new sensor"}, expect=200)
    m = api.post(f"{BASE}/monitors/mute/mutes", {"until": "2021-06-01T00:00:00Z", "reason": "move"}, expect=200).json()
    assert [x["feature"] for x in m["mutes"]] == ["temp", ""]
    api.post(f"{BASE}/monitors/mute/mutes", {"until": "2021-06-01T00:00:00Z"}, expect=422)
    found = {}
    for d in ("2021-05-01", "2021-07-01"):
        rows = [f"{d}-{i},{d},{i + 9},{i},,a" for i in range(300)]
        send(api, "mute", [HEADER, *rows])
        done = api.post(f"{BASE}/monitors/mute/windows/close", {"start": f"{d}T00:00:00Z"}, expect=200).json()
        found[d] = {x["cause"]: x for x in (api.get(f"/api/v1/decisions/{i}").json() for i in done["decisions"])}
    assert found["2021-05-01"]["performance"]["suppressed_by"] == "muted" and not found["2021-05-01"]["performance"]["fired"]
    assert found["2021-07-01"]["performance"]["fired"]
    assert all(f["data_quality"]["inputs"]["defects"] == [] for f in found.values())


def test_without_a_champion_rows_are_refused_and_nothing_is_not(server, api, trained):
    world.model(server, "demo", "idle", trained, alias=None)
    put(api, "idle", subject={"model": "idle"})
    r = send(api, "idle", [HEADER, *rows_of("2021-01-01", 1)], expect=409)
    assert "no version with the alias champion" in r["detail"]
    assert send(api, "idle", [HEADER])["rows"] == 0


def test_training_data_that_cannot_be_read_is_not_the_rows_fault(server, api, trained):
    for n, (what, data) in enumerate({"random": bytes(range(256)) * 8, "cut": gzip.compress(training())[:-9], "empty": b"",
                                      "no csv": gzip.compress(b'a,"b\n')}.items()):
        version = world.dataset(api, "demo", f"broken-{n}", {"part.csv.gz": data})
        world.model(server, "demo", f"broken-{n}", version, level=1.0)
        put(api, f"broken-{n}", subject={"model": f"broken-{n}"})
        r = send(api, f"broken-{n}", [HEADER, *rows_of("2021-01-01", 3)], expect=409)
        assert "training data part.csv.gz" in r["detail"], (what, r)
        assert windows(api, f"broken-{n}") == {}


def test_memory_does_not_grow_with_the_rows(server, api, trained):
    put(api, "big")
    header = HEADER.encode() + b"\n"

    def body(n):
        yield header
        for k in range(n // 1000):
            yield "".join(f"r{k * 1000 + i},2021-01-01T{i % 24:02d}:00:00Z,1.5,1,{i % 30},{'abc'[i % 3]}\n" for i in range(1000)).encode()

    send_big = lambda n: api.request("POST", f"{BASE}/monitors/big/observations", body(n),  # noqa: E731
                                     headers={**CSV, "Transfer-Encoding": "chunked"}, expect=200).json()
    assert send_big(20000)["rows"] == 20000
    before = server.rss_kib()
    assert send_big(60000) == {"rows": 40000, "duplicates": 20000, "late": 0, "unknown": 0, "windows": 1, "reopened": 0,
                                "replayed": False}
    assert server.rss_kib() - before < 60000
    done = api.post(f"{BASE}/monitors/big/windows/close", {"start": "2021-01-01T00:00:00Z"}, expect=200).json()
    assert done["closed"] == 1 and windows(api, "big")["2021-01-01"]["rows"] == 60000


def test_a_server_that_is_killed_leaves_nothing_half_written(server, api, trained):
    put(api, "killed")
    lines = "\n".join([HEADER, *rows_of("2021-04-01", 1440)]) + "\n"
    sent = 0
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.sendall((f"POST {BASE}/monitors/killed/observations?batch=k HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                   f"Authorization: Bearer {server.token}\r\nContent-Type: text/csv\r\nContent-Length: {6 * len(lines)}\r\n\r\n").encode())
        while server.sql("SELECT count(*) FROM observation_stage") == ["0"] and sent < 5:
            s.sendall(lines.encode() if sent == 0 else lines.split("\n", 1)[1].encode())
            sent += 1
        until(lambda: server.sql("SELECT count(*) > 0 FROM observation_stage") == ["t"], message=server.log)
        server.kill()
    server.start()
    assert windows(api, "killed") == {}
    first = send(api, "killed", lines.encode(), batch="k")
    assert (first["rows"], first["replayed"]) == (1440, False)
    server.kill()
    server.start()
    assert send(api, "killed", lines.encode(), batch="k") == {**first, "replayed": True}
