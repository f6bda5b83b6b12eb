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
                                       ("retries: {preempted: 1}", "known: user, infra"), ("zzz: 1", "known: needs, run, image, ")])
def test_an_unknown_key_says_what_is_known(api, project, key, said):
    source = f"apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {{name: p}}\nspec:\n  steps:\n    s:\n      run: 'true'\n      {key}\n"
    refused = api.put("/api/v1/projects/demo/pipelines/p", {"source": source}, expect=422).json()
    assert said in refused["detail"] and "line 8" in refused["detail"]
