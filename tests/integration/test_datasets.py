"""Data sets through the API: versions, manifests, appends, conflicts, downloads."""
import hashlib
import http.client
import json
import os
import threading

import pytest

from harness import quote


def upload(api, project, data):
    digest = hashlib.sha256(data).hexdigest()
    api.put(f"/api/v1/projects/{project}/blobs/{digest}", data, expect=201)
    return digest


def entry(api, project, path, data, **more):
    return {"path": path, "digest": upload(api, project, data), "size": len(data), **more}


def manifest_digest(files):
    h = hashlib.sha256()
    for f in sorted(files, key=lambda f: f["path"].encode()):
        h.update(f"{f['path']}\0{f['size']}\0{f['digest']}\n".encode())
    return h.hexdigest()


@pytest.fixture
def dataset(api, project, request):
    name = "d-" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]
    api.post(f"/api/v1/projects/{project}/datasets", {"name": name}, expect=201)
    return f"/api/v1/projects/{project}/datasets/{name}"


def test_create_get_list_delete(api, project):
    base = f"/api/v1/projects/{project}/datasets"
    made = api.post(base, {"name": "weather", "description": "daily", "labels": {"team": "sky"}}, expect=201)
    assert made.json()["labels"] == {"team": "sky"} and made.json()["latest"] == 0
    assert api.get(f"{base}/weather", expect=200).json() == made.json()
    again = api.post(base, {"name": "weather"}, expect=409)
    assert again.json()["errors"][0]["pointer"] == "/name"
    for i in range(5):
        api.post(base, {"name": f"page-{i}"}, expect=201)
    names, cursor = [], ""
    while cursor is not None:
        page = api.get(f"{base}?limit=2" + (f"&cursor={cursor}" if cursor else ""), expect=200).json()
        assert len(page["items"]) <= 2
        names += [d["name"] for d in page["items"]]
        cursor = page.get("next_cursor")
    assert names == sorted(names) and {"weather", "page-0", "page-4"} <= set(names)
    assert api.delete(f"{base}/weather?dry_run=true").status == 204
    assert api.get(f"{base}/weather").status == 200
    api.delete(f"{base}/weather", expect=204)
    assert api.get(f"{base}/weather").status == 404
    assert api.delete(f"{base}/weather").status == 404


def test_version_and_its_digest(server, api, project, dataset):
    files = [entry(api, project, "b/two.csv", b"2\n", media_type="text/csv"), entry(api, project, "a.csv", b"1\n")]
    v = api.post(f"{dataset}/versions", {"files": files, "labels": {"q": "1"}}, expect=201).json()
    assert v["number"] == 1 and v["files"] == 2 and v["bytes"] == 4 and v["labels"] == {"q": "1"}
    assert v["digest"] == manifest_digest(files)
    assert api.get(f"{dataset}/versions/1", expect=200).json() == v
    assert api.get(f"{dataset}/versions/latest", expect=200).json() == v
    listed = api.get(f"{dataset}/versions/1/files", expect=200).json()["items"]
    assert [f["path"] for f in listed] == ["a.csv", "b/two.csv"]
    row = server.sql(f"SELECT type, parent, data->>'number' FROM event WHERE subject = '{v['id']}'")
    assert row == [f"dataset.version_created|{api.get(dataset).json()['id']}|1"]


def test_append(api, project, dataset):
    first = [entry(api, project, "1.csv", b"one")]
    second = [entry(api, project, "2.csv", b"two")]
    api.post(f"{dataset}/versions", {"files": first}, expect=201)
    v2 = api.post(f"{dataset}/versions", {"files": second, "latest": True}, expect=201).json()
    assert v2["number"] == 2 and v2["digest"] == manifest_digest(first + second)
    assert v2["parent_id"] == api.get(f"{dataset}/versions/1").json()["id"]
    third = [entry(api, project, "3.csv", b"three")]
    v3 = api.post(f"{dataset}/versions", {"files": third, "append_to": 1}, expect=201).json()
    assert v3["digest"] == manifest_digest(first + third)
    again = api.post(f"{dataset}/versions", {"files": first, "latest": True}, expect=422)
    assert "1.csv" in again.json()["detail"]
    assert api.post(f"{dataset}/versions", {"files": third, "append_to": 9}).status == 422
    both = api.post(f"{dataset}/versions", {"files": third, "append_to": 1, "latest": True}, expect=422)
    assert both.json()["errors"][0]["pointer"] == "/latest"


def test_latest_on_an_empty_data_set_makes_the_first(api, project, dataset):
    v = api.post(f"{dataset}/versions", {"files": [entry(api, project, "x", b"x")], "latest": True}, expect=201).json()
    assert v["number"] == 1 and "parent_id" not in v


def test_the_same_files_are_a_conflict(api, project, dataset):
    files = [entry(api, project, "a", b"a")]
    api.post(f"{dataset}/versions", {"files": files}, expect=201)
    reply = api.post(f"{dataset}/versions", {"files": files}, expect=409)
    assert "exactly these files" in reply.json()["detail"]
    assert api.get(f"{dataset}").json()["latest"] == 1


def test_idempotency_key(api, project, dataset):
    body = {"files": [entry(api, project, "a", b"a")], "latest": True}
    head = {"Idempotency-Key": "append-1"}
    first = api.post(f"{dataset}/versions", body, headers=head, expect=201)
    again = api.post(f"{dataset}/versions", body, headers=head, expect=201)
    assert again.json() == first.json() and again.headers["Idempotency-Replayed"] == "true"
    other = dict(body, description="other")
    assert api.post(f"{dataset}/versions", other, headers=head).status == 422
    assert api.get(dataset).json()["latest"] == 1


def test_concurrent_appends_all_succeed(server, api, project, dataset):
    n = 12
    api.post(f"{dataset}/versions", {"files": [entry(api, project, "base", b"base")]}, expect=201)
    bodies = [{"files": [entry(api, project, f"f{i}", f"{i}".encode())], "latest": True} for i in range(n)]
    numbers = []

    def one(body):
        numbers.append(server.admin().post(f"{dataset}/versions", body, expect=201).json()["number"])
    threads = [threading.Thread(target=one, args=(b,)) for b in bodies]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(numbers) == list(range(2, n + 2))
    latest = api.get(f"{dataset}/versions/latest").json()
    assert latest["files"] == n + 1, "an append has lost another's files"


BAD_PATHS = ["", "/etc/passwd", "a//b", "a/", ".", "..", "a/../b", "./a", "a/.", "a\\b", "a\nb", "a\x7f", "x" * 256,
             "/".join(["d" * 200] * 6)]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_bad_paths(api, project, dataset, path):
    f = dict(entry(api, project, "fine", b"fine"), path=path)
    reply = api.post(f"{dataset}/versions", {"files": [f]}, expect=422)
    assert reply.json()["errors"][0]["pointer"] == "/files/0/path"
    assert api.get(dataset).json()["latest"] == 0


def test_bad_files(api, project, dataset):
    good = entry(api, project, "a", b"abc")

    def pointer(*files, status=422):
        return api.post(f"{dataset}/versions", {"files": list(files)}, expect=status).json()["errors"][0]["pointer"]
    assert pointer(good, dict(good)) == "/files/1/path"
    assert pointer(dict(good, digest="x" * 64)) == "/files/0/digest"
    assert pointer(dict(good, digest=good["digest"].upper())) == "/files/0/digest"
    assert pointer(dict(good, digest="0" * 64)) == "/files"
    assert pointer(dict(good, size=4)) == "/files"
    assert pointer(dict(good, size=-1)) == "/files/0/size"
    assert pointer(dict(good, media_type="a\nb")) == "/files/0/media_type"
    assert pointer() == "/files"
    assert pointer({k: v for k, v in good.items() if k != "digest"}) == "/files/0/digest"
    assert api.get(dataset).json()["latest"] == 0


def test_versions_are_listed_newest_first(api, project, dataset):
    for i in range(5):
        api.post(f"{dataset}/versions", {"files": [entry(api, project, "a", str(i).encode())]}, expect=201)
    seen, cursor = [], ""
    while cursor is not None:
        page = api.get(f"{dataset}/versions?limit=2" + (f"&cursor={cursor}" if cursor else ""), expect=200).json()
        seen += [v["number"] for v in page["items"]]
        cursor = page.get("next_cursor")
    assert seen == [5, 4, 3, 2, 1]
    missing = dataset + "-none"
    assert api.get(f"{missing}/versions").status == 404
    for number in ("0", "6", "-1", "x", "99999999999999999999"):
        assert api.get(f"{dataset}/versions/{number}").status == 404


def test_download(api, project, dataset):
    data = os.urandom(700_001)
    name = "dir/ä b%.csv"
    files = [entry(api, project, name, data, media_type="text/csv"),
             entry(api, project, "evil.html", b"<script>", media_type="text/html"), entry(api, project, "empty", b"")]
    api.post(f"{dataset}/versions", {"files": files}, expect=201)
    url = f"{dataset}/versions/1/files/dir/{quote('ä b%.csv')}"
    whole = api.get(url, expect=200)
    assert whole.body == data
    assert whole.headers["Content-Type"] == "text/csv"
    assert whole.headers["ETag"] == f'"{hashlib.sha256(data).hexdigest()}"'
    assert whole.headers["Content-Disposition"] == "attachment; filename*=UTF-8''%C3%A4%20b%25.csv"
    assert whole.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert whole.headers["X-Content-Type-Options"] == "nosniff"
    part = api.get(url, headers={"Range": "bytes=100-199"}, expect=206)
    assert part.body == data[100:200] and part.headers["Content-Range"] == f"bytes 100-199/{len(data)}"
    assert api.get(url, headers={"Range": "bytes=700001-"}).status == 416
    assert api.get(url, headers={"If-None-Match": whole.headers["ETag"]}).status == 304
    assert api.get(f"{dataset}/versions/latest/files/evil.html").headers["Content-Type"] == "application/octet-stream"
    assert api.get(f"{dataset}/versions/1/files/empty", expect=200).body == b""
    assert api.get(f"{dataset}/versions/1/files/none").status == 404
    assert api.get(f"{dataset}/versions/2/files/empty").status == 404


def test_a_damaged_file_is_never_seen_whole(server, api, project, dataset):
    data = os.urandom(600_000)
    f = entry(api, project, "a", data)
    api.post(f"{dataset}/versions", {"files": [f]}, expect=201)
    url = f"{dataset}/versions/1/files/a"
    path = server.dir / "data/blobs/sha256" / f["digest"][:2] / f["digest"][2:4] / f["digest"]
    with open(path, "r+b") as out:
        out.seek(len(data) // 2)
        out.write(bytes([data[len(data) // 2] ^ 1]))
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        api.with_token(api.token).get(url)
    with open(path, "ab") as out:
        out.write(b"more")
    assert api.get(url).status == 500
    path.unlink()
    assert api.get(url).status == 500
    assert "is not what" in server.log() or "are not what" in server.log()


def test_others_see_nothing(server, api, project, dataset):
    api.post("/api/v1/projects", {"name": "elsewhere"}, expect=(201, 409))
    stranger = server.person(f"stranger-{dataset.rsplit('/', 1)[1]}", "elsewhere", "owner")
    for url in (dataset, f"{dataset}/versions", f"{dataset}/versions/1/files"):
        assert stranger.get(url).status == 404
    viewer = server.person(f"viewer-{dataset.rsplit('/', 1)[1]}", project, "viewer")
    assert viewer.get(dataset).status == 200
    assert viewer.post(f"{dataset}/versions", {"files": [{"path": "a", "digest": "0" * 64, "size": 1}]}).status == 403
    assert viewer.delete(dataset).status == 403


STRANGE = [None, True, 0, -1, 2**63, 1.5, "", "x", "a\0b", "\ud800", "é" * 9000, [], ["x"], [None], {}, {"a": 1}, [{}],
           {"k": "v" * 300}, {"": "v"}, {"k" * 64: "v"}, {"k": 1}]


def test_strange_values_never_end_in_a_server_error(api, project, dataset):
    good = {"files": [entry(api, project, "a", b"a", media_type="text/csv")], "append_to": 1, "latest": False,
            "description": "d", "labels": {"a": "b"}}
    new = {"name": "sweep", "description": "d", "labels": {"a": "b"}}
    base = f"/api/v1/projects/{project}/datasets"

    def send(url, body):
        text = json.dumps(body).encode() if isinstance(body, dict) else body
        reply = api.post(url, text, headers={"Content-Type": "application/json"})
        assert reply.status in (201, 400, 409, 422), (url, text[:300], reply)
        if reply.status in (400, 422):
            assert reply.headers["Content-Type"] == "application/problem+json", reply
        return reply.status
    for url, body in ((f"{dataset}/versions", good), (base, new)):
        text = json.dumps(body).encode()
        for field in body:
            for value in STRANGE:
                send(url, dict(body, **{field: value}))
            send(url, {k: v for k, v in body.items() if k != field})
            assert send(url, text[:-1] + f', "{field}": 1}}'.encode()) == 400, "a duplicate member was taken"
        assert send(url, dict(body, unknown=1)) == 422
        for broken in (b"", b"{", b"[]", b"null", b"\xff", b'{"files": "\xff"}', text + b"x", b"[" * 50_000):
            assert send(url, broken) in (400, 422)
    for member in good["files"][0]:
        for value in STRANGE:
            send(f"{dataset}/versions", dict(good, files=[dict(good["files"][0], **{member: value})]))
    assert api.post(f"{dataset}/versions", b"{}", headers={"Content-Type": "text/plain"}).status == 415
