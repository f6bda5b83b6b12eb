"""docs/files.md has every key that the server takes in the files that users write."""
import re
import subprocess

import pytest

from harness import ROOT, program

FORMS = {"resources.gpus"}  # of several forms, one of which is an object with keys of its own


def sections():
    """Of each kind: place -> the rows of its table by key. The place of the first table is ""."""
    text = (ROOT / "docs/files.md").read_text()
    kinds = dict(zip(("pipeline", "monitor"), re.split(r"\n### (?:Pipeline|Monitor)\n", text)[1:]))
    found = {}
    for kind, part in kinds.items():
        places = re.split(r"\n\*\*`([^`]+)`\*\*[^\n]*\n", part)
        tables = dict(zip(["", *places[1::2]], places[0::2]))
        found[kind] = {place: {m[1]: m[0] for m in re.finditer(r"^\| `([^`]+)` \|.*$", rows, re.M)} for place, rows in tables.items()}
    return found


def walk(schema, place, prefix):
    """(table, key, schema) of every member."""
    for name, sub in schema["properties"].items():
        yield place, prefix + name, sub
        here = f"{place}.{prefix}{name}" if place else prefix + name
        if "properties" in sub:
            yield from walk(sub, place, f"{prefix}{name}.")
        elif "properties" in sub.get("items", {}):
            yield from walk(sub["items"], here + "[]", "")
        elif "properties" in (sub.get("additionalProperties") or {}):
            yield from walk(sub["additionalProperties"], here + ".NAME", "")


@pytest.mark.parametrize("kind", ["pipeline", "monitor"])
def test_every_key_is_documented(server, kind):
    schema = server.client().get(f"/api/v1/schemas/{kind}.json", expect=200).json()
    documented = sections()[kind]
    accepted = {(place, key): sub for place, key, sub in walk(schema, "", "")}
    assert len(accepted) > 50
    assert {(p, k) for p, rows in documented.items() for k in rows if p not in FORMS} == set(accepted)
    for (place, key), sub in accepted.items():
        row = documented[place][key]
        if "default" in sub and sub["default"] != [] and not isinstance(sub["default"], (bool, dict)):
            assert f"`{sub['default']}`" in row or f'`"{sub["default"]}"`' in row, row
        for limit in ("minimum", "maximum"):
            if sub.get("type") == "integer" and limit in sub:
                assert str(sub[limit]) in row, row
        for word in sub.get("enum", []):
            assert f"`{word}`" in row, row


def test_the_document_is_as_the_tables_are():
    made = subprocess.run([str(program("tidemill-server")), "--files"], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    assert (ROOT / "docs/files.md").read_text().endswith(made)


@pytest.mark.parametrize("key, said", [("retires: {user: 1}", "did you mean 'retries'?"), ("retries: {count: 1}", "known: user, infra"),
                                       ("zzz: 1", "known: needs, matrix, ")])
def test_an_unknown_key_says_what_is_known(api, project, key, said):
    source = f"apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {{name: p}}\nspec:\n  steps:\n    s:\n      run: 'true'\n      {key}\n"
    refused = api.put("/api/v1/projects/demo/pipelines/p", {"source": source}, expect=422).json()
    assert said in refused["detail"] and "line 8" in refused["detail"]


def test_every_variable_of_a_step_is_documented():
    text = (ROOT / "docs/files.md").read_text()
    sources = [(ROOT / "worker" / p).read_text() for p in ("task.c", "runtime/launch.c")]
    names = {n for s in sources for n in re.findall(r'"((?:TIDEMILL|MLFLOW|CUDA|NVIDIA)_[A-Z_]+|TRACEPARENT|HOME|USER|LOGNAME|LANG|PATH|NO_PROXY)(?:=%s)?"', s)}
    assert {"TIDEMILL_ATTEMPT_NUMBER", "MLFLOW_DISABLE_TELEMETRY", "TIDEMILL_DATASET_"} <= names
    assert {n for n in names if f"`{n}`" not in text and f"`{n}<" not in text} == set()


@pytest.mark.parametrize("run, said", [("''", "/run: must not be empty"), ('" \\n"', "/run: must not be empty"), ("[]", "1 to"), ("['']", "the first not empty"),
                                       ("' '", "/run: must not be empty"), ("[' ', x]", "the first not empty")])
def test_an_empty_command_is_refused(api, project, run, said):
    source = f"apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {{name: e}}\nspec: {{steps: {{s: {{run: {run}}}}}}}\n"
    for refused in (api.post("/api/v1/projects/demo/runs", {"source": source}, expect=422),
                    api.put("/api/v1/projects/demo/pipelines/e", {"source": source}, expect=422)):
        problem = refused.json()
        assert said in problem["errors"][0]["pointer"] + ": " + problem["detail"] and "/steps/s/run" in problem["errors"][0]["pointer"]


@pytest.mark.parametrize("run", ['"${inputs.word}"', '["${inputs.word}", x]'])
def test_a_command_that_is_empty_when_it_is_filled_in(api, project, run):
    source = "apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {name: f}\nspec:\n  inputs: {word: {type: string, default: ''}}\n" \
        f"  defaults: {{runtimes: [process]}}\n  steps: {{s: {{run: {run}}}}}\n"
    refused = api.post("/api/v1/projects/demo/runs", {"source": source}, expect=422).json()
    assert "must not be empty, filled in" in refused["detail"] and "/steps/s/run" in refused["errors"][0]["pointer"]
    api.post("/api/v1/projects/demo/runs", {"source": source, "inputs": {"word": "true"}}, expect=201)


def test_limits_of_numbers_are_written_as_one_writes_them(api, project):
    source = "apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {name: l}\nspec:\n" \
        "  inputs: {n: {type: integer, default: 1, min: -2, max: 5}, r: {type: number, default: 1, min: 0.25, max: 10}}\n" \
        "  defaults: {runtimes: [process]}\n  steps: {s: {run: 'true'}}\n"
    for inputs, said in (({"n": 6}, "must be at most 5"), ({"n": -3}, "must be at least -2"), ({"r": 0.1}, "must be at least 0.25"),
                         ({"r": 11}, "must be at most 10")):
        refused = api.post("/api/v1/projects/demo/runs", {"source": source, "inputs": inputs}, expect=422).json()
        assert refused["errors"][0]["detail"] == said


@pytest.mark.parametrize("path, status, said", [
    ("runs/%00", 400, "The path has a NUL (%00)"), ("runs/%zz", 400, "'%' without two hexadecimal digits"), ("runs/%ff", 400, "not UTF-8"),
    ("runs/x?wait=%00", 400, "The query has a NUL (%00)"), ("tracking-runs/x/artifacts", 404, "there is no such tracking run")])
def test_addresses_that_are_wrong_say_how(api, path, status, said):
    assert said in api.get(f"/api/v1/{path}", expect=status).json()["detail"]
