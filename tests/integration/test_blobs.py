"""The blob store behind its routes: uploads, what they refuse, downloads, ranges, damage, the collector's locks."""
import hashlib
import os
import socket
import threading
import time

import pytest

from harness import Server, until


def digest_of(data):
    return hashlib.sha256(data).hexdigest()


def put(api, project, data, digest=None, **kw):
    return api.put(f"/api/v1/projects/{project}/blobs/{digest or digest_of(data)}", data, **kw)


def stored(server, digest):
    return server.dir / "data/blobs/sha256" / digest[:2] / digest[2:4] / digest


def leftovers(server):
    return os.listdir(server.dir / "data/blobs/tmp")


def test_put_then_head(server, api, project):
    data = os.urandom(300_000)
    digest = digest_of(data)
    assert api.get(f"/api/v1/projects/{project}/blobs/{digest}").status == 404
    reply = put(api, project, data, expect=201)
    assert reply.json() == {"digest": digest, "size": len(data)}
    assert api.get(f"/api/v1/projects/{project}/blobs/{digest}", expect=200).json()["size"] == len(data)
    assert api.request("HEAD", f"/api/v1/projects/{project}/blobs/{digest}").status == 200
    assert stored(server, digest).read_bytes() == data
    assert leftovers(server) == []


@pytest.mark.parametrize("size", [0, 1, 65536, 65537, 1 << 20, (3 << 20) + 17])
def test_sizes(server, api, project, size):
    data = os.urandom(size)
    put(api, project, data, expect=201)
    put(api, project, data, expect=201)
    assert stored(server, digest_of(data)).stat().st_size == size


def test_chunked_body_without_a_length(server, api, project):
    data = os.urandom(2_500_000)
    reply = api.put(f"/api/v1/projects/{project}/blobs/{digest_of(data)}",
                    (data[i:i + 70_001] for i in range(0, len(data), 70_001)),
                    headers={"Transfer-Encoding": "chunked"}, expect=201)
    assert reply.json()["size"] == len(data)


def test_other_bytes_than_promised_leave_nothing(server, api, project):
    data = os.urandom(1_500_000)
    other = digest_of(b"something else")
    reply = put(api, project, data, digest=other, expect=422)
    assert digest_of(data) in reply.json()["detail"]
    assert not stored(server, other).exists() and not stored(server, digest_of(data)).exists()
    assert leftovers(server) == []
    assert server.sql(f"SELECT count(*) FROM blob WHERE digest = '\\x{other}'") == ["0"]


def test_bytes_that_are_there_are_compared_all_the_same(server, api, project):
    data = os.urandom(100_000)
    put(api, project, data, expect=201)
    wrong = bytes([data[0] ^ 1]) + data[1:]
    put(api, project, wrong, digest=digest_of(data), expect=422)


@pytest.mark.parametrize("digest", ["abc", "Z" * 64, "A" * 64, "0" * 63])
def test_bad_digests(api, project, digest):
    for method in ("PUT", "GET"):
        reply = api.request(method, f"/api/v1/projects/{project}/blobs/{digest}", b"x" if method == "PUT" else None,
                            expect=422)
        assert reply.json()["errors"][0]["pointer"] == "/digest"


def test_a_digest_alone_opens_nothing(server, api, project):
    """Bytes of another project are not there, and cannot be had by naming them."""
    api.post("/api/v1/projects", {"name": "other"}, expect=201)
    data = os.urandom(1000)
    put(api, project, data, expect=201)
    assert api.get(f"/api/v1/projects/other/blobs/{digest_of(data)}").status == 404
    api.post("/api/v1/projects/other/datasets", {"name": "stolen"}, expect=201)
    reply = api.post("/api/v1/projects/other/datasets/stolen/versions",
                     {"files": [{"path": "a", "digest": digest_of(data), "size": len(data)}]}, expect=422)
    assert "not been uploaded" in reply.json()["detail"]


def test_a_broken_upload_leaves_nothing(server, api, project):
    data = os.urandom(3 << 20)
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.sendall((f"PUT /api/v1/projects/{project}/blobs/{digest_of(data)} HTTP/1.1\r\nHost: x\r\n"
                   f"Authorization: Bearer {api.token}\r\nContent-Length: {len(data)}\r\n\r\n").encode() + data[:2 << 20])
        until(lambda: leftovers(server))
    until(lambda: not leftovers(server))
    assert not stored(server, digest_of(data)).exists()


def test_too_large(postgres):
    with Server(postgres, blob_max="1MiB") as s:
        api = s.admin()
        api.post("/api/v1/projects", {"name": "p"}, expect=201)
        put(api, "p", os.urandom(1 << 20), expect=201)
        with_length = put(api.with_token(api.token), "p", os.urandom((1 << 20) + 1))
        assert with_length.status == 413
        data = os.urandom((1 << 20) + 1)
        chunked = api.with_token(api.token).put(f"/api/v1/projects/p/blobs/{digest_of(data)}", (data[i:i + 9999] for i in
                                                range(0, len(data), 9999)), headers={"Transfer-Encoding": "chunked"})
        assert chunked.status == 413
        assert leftovers(s) == []


def test_the_same_bytes_from_many(server, project):
    data = os.urandom(2 << 20)
    replies = []

    def one():
        replies.append(put(server.admin(), project, data).status)
    threads = [threading.Thread(target=one) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert replies == [201] * 8
    assert stored(server, digest_of(data)).read_bytes() == data
    assert leftovers(server) == []


def test_permissions(server, project):
    data = b"by a viewer"
    viewer = server.person("blob-viewer", project, "viewer")
    assert put(viewer, project, data).status == 403
    stranger = server.client("tdm_pat_aaaaaaaaaaaa_" + "a" * 49)
    assert put(stranger, project, data).status == 401
    assert not stored(server, digest_of(data)).exists()


def test_the_collector(postgres):
    """Removes what nothing refers to, and what has no row; keeps what is in use or young."""
    with Server(postgres, blob_grace="2s", blob_gc_interval="1s") as s:
        api = s.admin()
        api.post("/api/v1/projects", {"name": "p"}, expect=201)
        api.post("/api/v1/projects/p/datasets", {"name": "d"}, expect=201)
        kept, lost = os.urandom(5000), os.urandom(7000)
        put(api, "p", kept, expect=201)
        api.post("/api/v1/projects/p/datasets/d/versions",
                 {"files": [{"path": "a", "digest": digest_of(kept), "size": len(kept)}]}, expect=201)
        put(api, "p", lost, expect=201)
        orphan = stored(s, digest_of(b"orphan"))
        orphan.parent.mkdir(parents=True)
        orphan.write_bytes(b"orphan")
        until(lambda: not stored(s, digest_of(lost)).exists() and not orphan.exists(), 20)
        assert api.get(f"/api/v1/projects/p/blobs/{digest_of(lost)}").status == 404
        assert api.get("/api/v1/projects/p/datasets/d/versions/1/files/a", expect=200).body == kept
        put(api, "p", lost, expect=201)
        assert stored(s, digest_of(lost)).read_bytes() == lost
        api.delete("/api/v1/projects/p/datasets/d", expect=204)
        until(lambda: not stored(s, digest_of(kept)).exists(), 20)


def test_uploads_against_the_collector(postgres):
    """What an acknowledged upload has left can be referred to, however busy the collector is."""
    with Server(postgres, blob_grace="1s", blob_gc_interval="1s") as s:
        api = s.admin()
        api.post("/api/v1/projects", {"name": "p"}, expect=201)
        api.post("/api/v1/projects/p/datasets", {"name": "d"}, expect=201)
        same = os.urandom(1000)
        end = time.monotonic() + 6
        n = 0
        while time.monotonic() < end:
            data = same if n % 2 else os.urandom(1000)
            put(api, "p", data, expect=201)
            api.post("/api/v1/projects/p/datasets/d/versions",
                     {"files": [{"path": f"f{n}", "digest": digest_of(data), "size": 1000}], "latest": True}, expect=201)
            n += 1
        for i in range(n):
            api.get(f"/api/v1/projects/p/datasets/d/versions/latest/files/f{i}", expect=200)
