"""Tokens and administrators: what a token opens is what was asked for, or there is none."""
import http.client
import json
import re
import subprocess
import zlib

import pytest

from harness import ROOT, Server, program, until

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def bob(api, project):
    api.post("/api/v1/principals", {"name": "bob"}, expect=201)
    api.put(f"/api/v1/projects/{project}/members/bob", {"role": "operator"}, expect=200)
    return "/api/v1/principals/bob/tokens"


def self_of(server, token):
    return server.client(token).get("/api/v1/auth/self", expect=200).json()


def test_a_token_for_somebody_is_limited_as_asked(server, api, project, bob):
    token = api.post(bob, {"name": "narrow", "project": project}, expect=201).json()["token"]
    assert self_of(server, token)["project"] == project
    ci = api.post(bob, {"name": "ci", "kind": "ci", "project": project}, expect=201).json()["token"]
    assert self_of(server, ci)["project"] == project


@pytest.mark.parametrize("body", [{"project": "no-such"}, {"kind": "ci"}, {"kind": "ci", "project": "no-such"}])
@pytest.mark.parametrize("path", ["/api/v1/principals/bob/tokens", "/api/v1/tokens"])
def test_a_limit_that_cannot_be_makes_no_token(server, api, bob, path, body):
    before = server.sql("SELECT count(*) FROM token")
    p = api.post(path, {"name": "x", **body}, expect=422).json()
    assert p["errors"][0]["pointer"] == "/project"
    assert server.sql("SELECT count(*) FROM token") == before


# Their credential is used up by what they make (a bootstrap or join token, the person's own token as a cookie).
MADE_ONCE = {"auth.bootstrap", "sessions.create", "workers.enroll"}


def test_every_post_that_creates_takes_an_idempotency_key():
    doc = json.loads((ROOT / "api/openapi.json").read_text())
    posts = [m["post"] for m in doc["paths"].values() if "post" in m and "201" in m["post"]["responses"]]
    assert len(posts) > 8
    without = {p["operationId"] for p in posts if "Idempotency-Key" not in [q["name"] for q in p["parameters"]]}
    assert without == MADE_ONCE


def test_a_join_token_is_made_once_for_a_key(server, api):
    count = "SELECT count(*) FROM token WHERE kind = 'jn'"
    before = int(server.sql(count)[0])
    head = {"Idempotency-Key": "join-1"}
    first = api.post("/api/v1/workers/join-tokens", {"pool": "default"}, headers=head, expect=201).json()
    again = api.post("/api/v1/workers/join-tokens", {"pool": "default"}, headers=head, expect=201)
    assert first["token"].startswith("tdm_jn_") and again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == {k: v for k, v in first.items() if k != "token"}
    assert api.post("/api/v1/workers/join-tokens", {"pool": "other"}, headers=head).status == 422
    assert int(server.sql(count)[0]) == before + 1


def test_knowing_the_id_of_a_token_is_not_using_it(server, api, project, bob):
    token = api.post(bob, {"name": "used"}, expect=201).json()["token"]
    head, kind, ident, _ = token.split("_")
    body = f"{head}_{kind}_{ident}_" + "x" * 43
    crc, check = zlib.crc32(body.encode()), ""
    for _ in range(6):
        crc, digit = divmod(crc, 62)
        check = DIGITS[digit] + check
    used = f"SELECT last_used_at IS NOT NULL FROM token WHERE id = '{ident}'"
    server.client(body + check).get("/api/v1/auth/self", expect=401)
    # A write of the same lane that comes after: what the refused request had sent would be there, too.
    other = api.post(bob, {"name": "later"}, expect=201).json()["token"]
    self_of(server, other)
    until(lambda: server.sql(f"SELECT last_used_at IS NOT NULL FROM token WHERE id = '{other.split('_')[2]}'") == ["t"])
    assert server.sql(used) == ["f"]


def follow(server, project, token):
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    conn.request("GET", f"/api/v1/projects/{project}/events", headers={"Authorization": f"Bearer {token}"})
    stream = conn.getresponse()
    assert stream.status == 200 and stream.readline() == b"retry: 2000\n"
    return stream


def test_a_limited_token_of_an_administrator_may_follow(server, api, project):
    kept = api.post("/api/v1/tokens", {"name": "kept", "project": project}, expect=201).json()
    revoked = api.post("/api/v1/tokens", {"name": "revoked", "project": project}, expect=201).json()
    stream, cut = follow(server, project, kept["token"]), follow(server, project, revoked["token"])
    api.delete(f"/api/v1/tokens/{revoked['id']}", expect=204)
    while cut.readline():
        pass  # its end says that all who follow have been looked at
    api.post(f"/api/v1/projects/{project}/datasets", {"name": "followed"}, expect=201)
    line = stream.readline()
    while line and not line.startswith(b"event: dataset.created"):
        line = stream.readline()
    assert line, "the stream was cut"
    stream.close()


def test_recovery_makes_another_administrator_once(postgres):
    with Server(postgres) as server:
        first = server.admin().get("/api/v1/auth/self", expect=200).json()
        token = server.command("bootstrap", "--recover").split()[-1]
        pat = server.client(token).post("/api/v1/auth/bootstrap", expect=201).json()["token"]
        second = self_of(server, pat)
        assert second["admin"] is True and second["name"].startswith("admin-") and second["principal"] != first["principal"]
        assert server.client(token).post("/api/v1/auth/bootstrap").status in (401, 404)


@pytest.mark.parametrize("settings, peer", [({}, "127.0.0.1"), ({"behind_tls_proxy": "true"}, "203.0.113.7"),
                                            ({"behind_tls_proxy": "true", "proxies": "10.0.0.0/8, fd00::1"}, "127.0.0.1"),
                                            ({"behind_tls_proxy": "true", "proxies": "10.0.0.0/8, 127.0.0.1"}, "203.0.113.7")])
def test_only_a_proxy_that_is_known_says_who_its_clients_are(postgres, settings, peer):
    with Server(postgres, **settings) as server:
        server.admin().post("/api/v1/projects", {"name": "p"}, expect=201,
                            headers={"X-Forwarded-For": "198.51.100.1, 203.0.113.7", "X-Request-Id": "who-is-it"})
        [line] = until(lambda: re.findall(r".*who-is-it.*", server.log()))
        assert peer in line and "198.51.100.1" not in line


def test_a_proxy_that_is_no_address_is_named():
    done = subprocess.run([program("tidemill-server"), "--proxies=10.0.0.0/8,balancer", "check"], capture_output=True, text=True)
    assert done.returncode == 1 and 'proxies: "balancer"' in done.stderr


def ends(server, client, path, **body):
    """When the token ends that is made so, in seconds from now; or what is said against it."""
    name = {} if "join" in path else {"name": "made"}
    made = client.post(path, {**name, **body}, expect=(201, 422)).json()
    if "errors" in made:
        assert made["errors"][0]["pointer"] == "/expires_in"
        return made["errors"][0]["detail"]
    return float(server.sql(f"SELECT extract(epoch FROM expires_at - now()) FROM token WHERE id = '{made['id']}'")[0])


def test_no_token_outlives_its_maker(server, api, project, bob):
    tokens, joins, day = "/api/v1/tokens", "/api/v1/workers/join-tokens", 86400
    of_bob = server.client(api.post(bob, {"name": "hour", "expires_in": "1h"}, expect=201).json()["token"])
    assert ends(server, of_bob, tokens, expires_in="30m") <= 1800
    assert ends(server, of_bob, tokens) <= 3600 < 90 * day  # as long as may be
    refused = "the token would outlive the one that makes it, which ends at 2"
    assert ends(server, of_bob, tokens, expires_in="365d").startswith(refused)
    short = server.client(api.post(tokens, {"name": "hour", "expires_in": "1h"}, expect=201).json()["token"])
    for path, life in ((tokens, "365d"), (bob, "365d"), (joins, "1d")):  # an administrator's, but for an hour
        assert ends(server, short, path, expires_in=life).startswith(refused)
        assert 0 < ends(server, short, path) <= 3600
    assert ends(server, api, tokens, expires_in="365d") > 364 * day  # theirs who may renew what others have
    assert ends(server, api, bob, expires_in="365d") > 364 * day and ends(server, api, joins, expires_in="1d") > 0.9 * day


def test_a_revoked_token_leaves_those_that_it_has_made(server, api):
    """So one takes the place of another; to disable the principal ends all."""
    api.post("/api/v1/principals", {"name": "rotates"}, expect=201)
    old = api.post("/api/v1/principals/rotates/tokens", {"name": "old"}, expect=201).json()
    new = server.client(old["token"]).post("/api/v1/tokens", {"name": "new"}, expect=201).json()
    there = server.client(new["token"])
    there.delete(f"/api/v1/tokens/{old['id']}", expect=204)
    server.client(old["token"]).get("/api/v1/auth/self", expect=401)
    listed = there.get("/api/v1/tokens", expect=200).json()["items"]
    assert {t["name"]: bool(t.get("revoked_at")) for t in listed} == {"old": True, "new": False}
    api.delete("/api/v1/principals/rotates", expect=204)
    until(lambda: there.get("/api/v1/auth/self").status == 401, 10)


def test_a_key_that_is_not_whole_is_named(postgres):
    with Server(postgres) as server:
        server.stop()
        key = server.dir / "data/secret.key"
        for size in (31, 33):
            key.write_bytes(b"k" * size)
            done = subprocess.run([program("tidemill-server"), "bootstrap"], env=server.env(), capture_output=True, text=True)
            assert done.returncode == 1 and "secret.key must hold 32 bytes" in done.stderr, done
