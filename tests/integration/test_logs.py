"""Logs: what a worker may send, what is stored of it, pages, downloads and followers."""
import random
import struct
import threading
import time

import pytest

from harness import until
from spool import STDERR, STDOUT, SYSTEM, Attempt, Worker, frame, frames, sha, sse


@pytest.fixture(scope="module")
def worker(server):
    return Worker(server, "log-worker")


@pytest.fixture
def attempt(server, api, project, worker):
    return Attempt(server, worker, api.get(f"/api/v1/projects/{project}").json()["id"])


def page(api, attempt, **args):
    query = "&".join(f"{k}={v}" for k, v in args.items())
    return api.get(f"/api/v1/attempts/{attempt.id}/log?{query}", expect=200).json()


def raw(api, attempt, extra=""):
    return api.get(f"/api/v1/attempts/{attempt.id}/log?raw=true{extra}", expect=200)


def texts(page):
    return [line["text"] for line in page["lines"]]


# ---- coming in ----

def test_appends_rewinds_and_repeats(api, attempt):
    a, b, c = frames("one\n"), frames("two\n"), frames("three\n")
    assert attempt.put(a) == len(a)
    assert attempt.put(a) == len(a)  # repeated
    assert attempt.put(c, len(a + b)) == len(a)  # a gap: back to what is stored
    assert attempt.put(a + b, 0) == len(a + b)  # overlap
    assert attempt.put(b"", 0) == len(a + b)  # only asks
    assert attempt.put(c, len(a + b)) == len(a + b + c)
    assert raw(api, attempt).body == b"one\ntwo\nthree\n"
    assert attempt.server.sql(f"SELECT count(*) FROM log_chunk WHERE attempt_id = '{attempt.id}'") == ["3"]


def test_what_is_refused(server, attempt, worker):
    good = frames("x\n")
    for bad in (good[:-1], good + b"\0" * 16, b"abc", frame(b"")):
        reply = attempt.put(bad)
        assert reply.status == 422 and "frame" in reply.json()["detail"], reply
    assert attempt.put(good, epoch=attempt.epoch + 1).json()["code"] == "superseded"
    other = Worker(server, "another-worker")
    assert attempt.put(good, api=other.api).json()["code"] == "superseded"
    assert attempt.put(good) == len(good)
    assert attempt.put(good + good, len(good) - 3).status == 422  # the edge is within a frame
    attempt.path = attempt.path.replace(attempt.id, "at_" + "0" * 26)
    assert attempt.put(good).json()["code"] == "superseded"
    attempt.path = attempt.path.replace("at_", "xx_")
    assert attempt.put(good).json()["code"] == "superseded"


def test_given_up(server, attempt):
    a = frames("x\n")
    assert attempt.put(a) == len(a)
    server.sql(f"UPDATE attempt SET state = 'lost' WHERE id = '{attempt.id}'")
    assert attempt.put(a, len(a)).json()["code"] == "superseded"
    assert attempt.final(a).json()["code"] == "superseded"


def test_any_bytes_at_any_cut(server, api, attempt):
    """Random frames of three streams, sent in pieces with repeats and gaps: what comes out is what went in."""
    rng = random.Random(7)
    spool, edges, out = b"", [0], {0: b"", STDOUT: b"", STDERR: b"", SYSTEM: b""}
    for _ in range(400):
        data = rng.randbytes(rng.choice([1, 5, 80, 3000, 65536 if rng.random() < 0.05 else 200]))
        stream = rng.choice([STDOUT, STDOUT, STDERR, SYSTEM])
        spool += frame(data, stream)
        edges.append(len(spool))
        out[stream] += data
        out[0] += data
    held = 0
    while held < len(spool):
        start = rng.choice([e for e in edges if abs(e - held) < 100_000])
        end = rng.choice([e for e in edges if e > start and e - start < 300_000] or [len(spool)])
        length = attempt.put(spool[start:end], start)
        assert length == (max(held, end) if start <= held else held)
        held = length
    assert attempt.final(spool) == len(spool)
    assert raw(api, attempt).body == out[0]
    for name, stream in (("stdout", STDOUT), ("stderr", STDERR), ("system", SYSTEM)):
        assert raw(api, attempt, f"&stream={name}").body == out[stream]
    lines = page(api, attempt, limit=1)["total"]
    assert lines == sum(out[s].count(b"\n") + (not out[s].endswith(b"\n")) for s in (1, 2, 3))


def test_large_bodies_are_cut_into_chunks(server, api, attempt):
    text = b"".join(b"step %d loss %f\n" % (i, 1 / (i + 1)) for i in range(150_000))
    spool = b"".join(frame(text[i:i + 4000]) for i in range(0, len(text), 4000))
    assert attempt.put(spool) == len(spool)
    n, packed = server.sql(f"SELECT count(*), sum(length(data)) FROM log_chunk WHERE attempt_id = '{attempt.id}'")[0].split("|")
    assert len(spool) / 65552 <= int(n) <= len(spool) / 60000 + 1
    assert int(packed) < len(spool) / 3
    assert raw(api, attempt).body == text
    p = page(api, attempt, **{"from": 99_999, "limit": 2})
    assert texts(p) == ["step 99998 loss %f" % (1 / 99999), "step 99999 loss %f" % (1 / 100000)]
    assert (p["first"], p["last"], p["total"]) == (99_999, 100_000, 150_000)
    try:
        assert attempt.put(b"\0" * (9 << 20)).status == 413
    except OSError:
        pass  # it was refused before all was sent


def test_many_at_once(server, api, project, worker):
    project_id = api.get(f"/api/v1/projects/{project}").json()["id"]
    attempts = [Attempt(server, worker, project_id) for _ in range(24)]
    before = int(server.sql("SELECT count(*) FROM log")[0])

    def ship(a, k):
        client = a.worker.api.with_token(a.worker.api.token)
        held = 0
        for i in range(15):
            data = frames(f"{k} line {i}\n")
            held = a.put(data, held, api=client)
        client.close()

    threads = [threading.Thread(target=ship, args=(a, k)) for k, a in enumerate(attempts)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert int(server.sql("SELECT count(*) FROM log")[0]) == before + len(attempts)
    for k, a in enumerate(attempts):
        assert texts(page(api, a)) == [f"{k} line {i}" for i in range(15)]


# ---- the end ----

def test_final(server, api, attempt):
    spool = frames("a\n", "b\n", "c")
    assert attempt.put(spool) == len(spool)
    assert attempt.final(spool + b"more") == len(spool)  # go on from there
    assert not page(api, attempt)["complete"]
    assert attempt.final(spool, epoch=attempt.epoch + 5).json()["code"] == "superseded"
    assert attempt.final(spool, dropped=17) == len(spool)
    assert attempt.final(spool, dropped=17) == len(spool)  # again
    assert attempt.final(spool, digest="0" * 64).json()["code"] == "conflict"
    assert attempt.put(frames("d"), len(spool)).json()["code"] == "conflict"
    p = page(api, attempt)
    assert p["complete"] and p["dropped"] == 17 and texts(p) == ["a", "b", "c"]
    assert not any(line.get("open") for line in p["lines"])
    assert server.sql(f"SELECT encode(digest, 'hex') FROM log WHERE attempt_id = '{attempt.id}'") == [sha(spool)]
    assert server.sql(f"SELECT parent, data->>'length' FROM event WHERE subject = '{attempt.id}' AND "
                      "type = 'attempt.log_final'") == [f"{attempt.run}|{len(spool)}"]


def test_many_become_final_at_once(server, api, project, worker):
    """Each is judged by itself: those that were given up meanwhile stay as they are, and the others are final."""
    project_id = api.get(f"/api/v1/projects/{project}").json()["id"]
    attempts = [Attempt(server, worker, project_id) for _ in range(24)]
    texts, answers = {}, {}
    for i, a in enumerate(attempts):
        texts[a.id] = frames(*(f"{i}.{k}\n" for k in range(i + 1)))
        assert a.put(texts[a.id]) == len(texts[a.id])
    lost, kept = [a.id for a in attempts[::3]], [a.id for a in attempts if a not in attempts[::3]]
    server.sql("UPDATE attempt SET state = 'lost' WHERE id IN ('%s')" % "', '".join(lost))
    together = threading.Barrier(len(attempts))

    def end(a):
        path, body = f"{a.path}/final", {"epoch": a.epoch, "length": len(texts[a.id]), "digest": sha(texts[a.id])}
        client = worker.api.with_token(worker.api.token)
        together.wait(10)
        answers[a.id] = client.post(path, body)

    threads = [threading.Thread(target=end, args=(a,)) for a in attempts]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    assert {i: (r.status, r.json().get("length", r.json().get("code"))) for i, r in answers.items()} == \
        {**{i: (409, "superseded") for i in lost}, **{i: (200, len(texts[i])) for i in kept}}
    ids = "', '".join(texts)
    assert server.sql(f"SELECT attempt_id FROM log WHERE final AND attempt_id IN ('{ids}') ORDER BY 1") == kept
    assert server.sql("SELECT subject, (data ->> 'lines')::int FROM event WHERE type = 'attempt.log_final'"
                      f" AND subject IN ('{ids}') ORDER BY 1") == [f"{a.id}|{i + 1}" for i, a in enumerate(attempts) if a.id in kept]


def test_final_of_nothing(api, attempt):
    assert attempt.final(b"") == 0
    p = page(api, attempt)
    assert p["complete"] and p["lines"] == [] and p["total"] == 0
    assert raw(api, attempt).body == b""


def test_other_digest_sends_anew(server, api, attempt):
    spool = frames("right\n")
    assert attempt.put(frames("wrong\n")) == len(spool)
    assert attempt.final(spool) == 0
    assert server.sql(f"SELECT count(*) FROM log_chunk WHERE attempt_id = '{attempt.id}'") == ["0"]
    assert attempt.put(spool) == len(spool)
    assert attempt.final(spool) == len(spool)
    assert raw(api, attempt).body == b"right\n"


def test_damage_is_found(server, api, attempt):
    spool = frames("x" * 2000 + "\n")
    assert attempt.put(spool) == len(spool)
    server.sql(f"UPDATE log_chunk SET data = overlay(data PLACING '\\x0000' FROM 12) WHERE attempt_id = '{attempt.id}'")
    assert api.get(f"/api/v1/attempts/{attempt.id}/log").json()["code"] == "corrupt"
    assert attempt.final(spool) == 0
    assert attempt.put(spool) == len(spool)
    assert attempt.final(spool) == len(spool)


def test_shorter_spool_of_a_crashed_host(server, api, attempt):
    kept, lost = frames("kept\n"), frames("lost on the host\n")
    assert attempt.put(kept + lost) == len(kept + lost)
    assert attempt.final(kept) == len(kept)
    assert texts(page(api, attempt)) == ["kept", "lost on the host"]
    assert attempt.final(kept) == len(kept)


def test_small_pieces_are_put_together(server, api, attempt):
    spool, expect = b"", []
    for i in range(300):
        spool += frame(b"piece %d " % i, STDOUT) + frame(b"err %d\n" % i, STDERR)
        if i % 7 == 0:
            spool += frame(b"\n", STDOUT)
    at, held = 0, 0
    while held < len(spool):
        end = at + 16 + struct.unpack_from("<I", spool, at)[0]
        held = attempt.put(spool[at:end], at)
        at = end
    before = [page(api, attempt, **{"from": f, "limit": 50})["lines"] for f in (1, 40, 300)]
    chunks = f"SELECT count(*) FROM log_chunk WHERE attempt_id = '{attempt.id}'"
    assert int(server.sql(chunks)[0]) > 600
    text = raw(api, attempt).body
    assert attempt.final(spool) == len(spool)
    until(lambda: server.sql(chunks) == ["1"], message="the chunks were not put together")
    assert raw(api, attempt).body == text
    after = [page(api, attempt, **{"from": f, "limit": 50})["lines"] for f in (1, 40, 300)]
    for b, a in zip(before, after):
        assert [(x["line"], x["stream"]) for x in a] == [(x["line"], x["stream"]) for x in b]


# ---- pages ----

def test_pages(api, attempt):
    spool = b"".join(frame(b"line %d\n" % i, STDERR if i % 3 == 0 else STDOUT) for i in range(1, 2501))
    assert attempt.put(spool) == len(spool)
    p = page(api, attempt)
    assert (p["first"], p["last"], p["total"], len(p["lines"])) == (1501, 2500, 2500, 1000)
    assert p["lines"][0] == {"line": 1501, "time": "2023-11-14T22:13:20Z", "stream": "stdout", "text": "line 1501"}
    p = page(api, attempt, tail=3)
    assert texts(p) == ["line 2498", "line 2499", "line 2500"]
    p = page(api, attempt, **{"from": 10, "limit": 5})
    assert [x["line"] for x in p["lines"]] == [10, 11, 12, 13, 14] and p["last"] == 14
    p = page(api, attempt, **{"from": 10, "limit": 5, "stream": "stderr"})
    assert [x["line"] for x in p["lines"]] == [12, 15, 18, 21, 24] and p["last"] == 24
    p = page(api, attempt, **{"from": 3000})
    assert p["lines"] == [] and (p["first"], p["last"], p["total"]) == (3000, 2999, 2500)
    assert api.get(f"/api/v1/attempts/{attempt.id}/log?from=1&tail=2").status == 422
    assert api.get(f"/api/v1/attempts/{attempt.id}/log?raw=true&follow=true").status == 422
    assert api.get(f"/api/v1/steps/{attempt.step}/log?tail=1", expect=200).json()["lines"][0]["text"] == "line 2500"


def test_lines_of_two_streams_overlap(api, attempt):
    spool = (frame(b"out begins, ", STDOUT) + frame(b"err\n", STDERR) + frame(b"out ends\nnext", STDOUT) +
             frame(b"err two", STDERR))
    assert attempt.put(spool) == len(spool)
    assert [(x["line"], x["stream"], x["text"], x.get("open", False)) for x in page(api, attempt)["lines"]] == [
        (1, "stdout", "out begins, out ends", False), (2, "stderr", "err", False), (3, "stdout", "next", True),
        (4, "stderr", "err two", True)]


def test_progress_is_folded_and_bytes_are_made_text(api, attempt):
    data = (b"\r  0%|    |\r 50%|##  |\r100%|####|\n" b"windows\r\n" b"\x1b[31mred\x1b[0m\n" b"bad \xff\xfe\x00 utf\n"
            + "grüße 漢字\n".encode())
    for i in range(0, len(data), 3):  # cut within characters
        attempt.put(b"".join(frame(data[k:k + 1]) for k in range(i, min(i + 3, len(data)))), 17 * i)
    assert texts(page(api, attempt)) == ["100%|####|", "windows", "\x1b[31mred\x1b[0m", "bad \ufffd\ufffd\x00 utf",
                                         "grüße 漢字"]
    assert raw(api, attempt).body == data


def test_a_huge_line(api, attempt):
    spool = b"".join(frame(b"x" * 60000) for _ in range(100)) + frame(b"\nafter\n")
    assert attempt.put(spool[:3_000_700], 0).status == 422
    cut = 60016 * 50
    assert attempt.put(spool[:cut]) == cut
    assert attempt.put(spool[cut:], cut) == len(spool)
    p = page(api, attempt)
    assert p["total"] == 2 and texts(p)[1] == "after"
    assert texts(p)[0] == "x" * 65536 + f"… and {6_000_000 - 65536} bytes more"
    assert len(raw(api, attempt).body) == 6_000_007


def test_pages_are_bounded_and_go_on(api, attempt):
    """Long lines: a page ends early and says where; following the pages gives every line once."""
    held = 0
    for k in range(4):
        spool = b"".join(frame(b"%d " % (k * 100 + i) + b"y" * 50_000 + b"\n") for i in range(100))
        held = attempt.put(spool, held)
    seen, at = [], 1
    while at <= 400:
        p = page(api, attempt, **{"from": at, "limit": 1000})
        assert p["first"] == at and p["lines"]
        seen += [int(t.split()[0]) for t in texts(p)]
        at = p["last"] + 1
    assert seen == list(range(400))


def pieces(text):
    """Frames of a text that is longer than one may be."""
    return frames(*(text[i:i + 50000] for i in range(0, len(text), 50000)))


def search(api, attempt, **args):
    """All matching lines, over as many requests as it takes."""
    found, at, asked = [], args.pop("from_", 1), 0
    while True:
        p = page(api, attempt, **args, **{"from": at})
        asked += 1
        found += p["lines"]
        assert p["last"] >= p["first"] - 1
        if p["last"] >= p["total"]:
            return found, asked
        assert p["last"] >= at, p
        at = p["last"] + 1


def test_search_finds_lines_by_their_numbers(api, attempt):
    rows = [f"step {i} loss={i % 7}.5{' CUDA out of memory' if i in (17, 4000) else ''}" for i in range(1, 5001)]
    assert attempt.put(pieces("".join(r + "\n" for r in rows))) > 0
    found, asked = search(api, attempt, grep="CUDA%20out%20of%20memory")
    assert [(f["line"], f["text"]) for f in found] == [(17, rows[16]), (4000, rows[3999])] and asked == 1
    found, asked = search(api, attempt, grep="loss%3D3.5", limit=100)
    assert [f["line"] for f in found] == [i for i in range(1, 5001) if i % 7 == 3] and asked > 7
    assert search(api, attempt, grep="loss%3D3.5", from_=4990)[0][0]["line"] == 4994
    assert search(api, attempt, grep="cuda")[0] == []
    assert len(search(api, attempt, grep="cuda", ignore_case="true")[0]) == 2
    assert search(api, attempt, grep="loss.3")[0] == []
    found, _ = search(api, attempt, grep="%5Estep%20(17|99)%20.*5", regex="true")
    assert [f["line"] for f in found] == [17, 99]
    assert page(api, attempt, grep="no%20such%20line")["last"] == 5000


def test_search_by_stream_time_and_over_streams_that_overlap(api, attempt):
    t = 1_700_000_000

    def at(seconds):
        return (t + seconds) * 1_000_000

    spool = b"".join(frame(b"out %d\n" % i, STDOUT, at(i)) + frame(b"err %d\n" % i, STDERR, at(i)) for i in range(300))
    spool += frame(b"a line of stderr that ", STDERR, at(301)) + frame(b"out goes on\n" * 50, STDOUT, at(302))
    spool += frame(b"ends with a needle\n", STDERR, at(303))
    assert attempt.put(spool) == len(spool)
    assert all(f["stream"] == "stderr" for f in search(api, attempt, grep="r", stream="stderr")[0])
    found, _ = search(api, attempt, grep="needle", limit=1)
    assert [(f["line"], f["text"]) for f in found] == [(601, "a line of stderr that ends with a needle")]
    # The first match ends its page although an older line is open; that one is not lost.
    found, _ = search(api, attempt, grep="goes|needle", regex="true", limit=1)
    assert [f["line"] for f in found] == list(range(601, 652))
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t + 290))
    found, _ = search(api, attempt, since=since)
    assert found[0]["text"] == "out 290" and len(found) == 20 + 51
    found, _ = search(api, attempt, since=since, grep="err")
    assert [f["text"] for f in found][:2] == ["err 290", "err 291"]


def test_search_goes_on_over_many_chunks(api, attempt):
    block = "".join(f"{i} {'x' * 1000}\n" for i in range(2000))
    at = 0
    for _ in range(45):
        at = attempt.put(pieces(block), at)
    at = attempt.put(frames("the needle\n"), at)
    found, asked = search(api, attempt, grep="needle")
    assert [f["line"] for f in found] == [90001] and asked > 1


@pytest.mark.parametrize("query,pointer,words", [
    ("grep=(&regex=true", "/grep", "missing )"),
    ("grep=a{1001}&regex=true", "/grep", "invalid repetition size"),
    ("grep=((a{100}){100}){100}&regex=true", "/grep", ""),
    ("grep=" + "x" * 1001, "/grep", "1000"),
    ("grep=", "/grep", ""),
    ("grep=x&tail=5", "/grep", "cannot be combined"),
    ("grep=x&follow=true", "/grep", "cannot be combined"),
    ("since=2020-01-01&raw=true", "/since", "cannot be combined"),
    ("regex=true", "/regex", "goes with grep"),
    ("since=yesterday", "/since", ""),
])
def test_bad_searches_are_named(api, attempt, query, pointer, words):
    attempt.put(frames("x\n"))
    reply = api.get(f"/api/v1/attempts/{attempt.id}/log?{query.replace('{', '%7B').replace('}', '%7D')}")
    assert reply.status == 422, reply
    [error] = reply.json()["errors"]
    assert error.get("pointer", error.get("parameter", "")).strip("/").endswith(pointer.strip("/")) and words in error["detail"], error


def test_a_pattern_that_others_choke_on_takes_no_time(api, attempt):
    attempt.put(frames("a" * 60000 + "\n"))
    assert search(api, attempt, grep="(a*)*b", regex="true")[0] == []


def test_permissions(server, api, project, attempt):
    outsider = server.person("log-outsider", project, "viewer")
    assert outsider.get(f"/api/v1/attempts/{attempt.id}/log").status == 200
    api.delete(f"/api/v1/projects/{project}/members/log-outsider", expect=204)
    assert outsider.get(f"/api/v1/attempts/{attempt.id}/log").status == 404
    assert attempt.worker.api.get(f"/api/v1/attempts/{attempt.id}/log").status == 403
    assert api.put(attempt.path + f"?epoch={attempt.epoch}&offset=0", frames("x")).status == 403


# ---- following ----

class Follower(threading.Thread):
    def __init__(self, api, path, last_id=None):
        super().__init__(daemon=True)
        self.events, self.error = [], None
        self.args = (api, path, last_id)
        self.start()

    def run(self):
        try:
            for ev in sse(*self.args, timeout=20):
                self.events.append(ev)
        except Exception as e:  # shown by the test
            self.error = e

    def lines(self):
        """The last text under each number, and whether it has ended."""
        out = {}
        for _, event, data in list(self.events):
            for line in data.get("lines", []):
                out[line["line"]] = (line["text"], not line.get("open", False))
        return out

    def ended(self):
        return any(e[1] == "end" for e in self.events)


def log_path(attempt, **args):
    return f"/api/v1/attempts/{attempt.id}/log?follow=true" + "".join(f"&{k}={v}" for k, v in args.items())


def test_follow_backlog_tail_and_end(api, attempt):
    a, b = frames("one\n", "two\n"), frames("three\n", "fo")
    attempt.put(a)
    f = Follower(api, log_path(attempt))
    until(lambda: len(f.lines()) == 2)
    attempt.put(b, len(a))
    until(lambda: f.lines().get(4) == ("fo", False), message=lambda: f.events)  # not ended yet
    c = frames("ur\n", "last")
    attempt.put(c, len(a + b))
    until(lambda: f.lines().get(4) == ("four", True))
    attempt.final(a + b + c)
    until(f.ended)
    f.join(10)
    assert not f.is_alive() and f.error is None
    assert f.lines() == {1: ("one", True), 2: ("two", True), 3: ("three", True), 4: ("four", True), 5: ("last", True)}
    assert f.events[-1][1] == "end" and f.events[-1][2] == {"complete": True, "dropped": 0}


def test_follow_resumes(api, attempt):
    spool = [frame(b"%d\n" % i) for i in range(200)]
    held = attempt.put(b"".join(spool[:100]))
    first = next(sse(api, log_path(attempt)))
    assert int(first[0]) == held and len(first[2]["lines"]) == 100
    attempt.put(b"".join(spool[100:]), held)
    attempt.final(b"".join(spool))
    rest = Follower(api, log_path(attempt, **{"from": 50}), last_id=first[0])
    until(rest.ended)
    assert sorted(rest.lines()) == list(range(101, 201))
    assert [x[0] for x in rest.lines().values()] == [str(i) for i in range(100, 200)]


def test_follow_from_the_open_line(api, attempt):
    a = frames("one\n", "tw")
    attempt.put(a)
    f = Follower(api, log_path(attempt, **{"from": 3}))  # as the dashboard does after a page up to line 2
    time.sleep(0.3)
    b = frames("o\n", "three\n")
    attempt.put(b, len(a))
    until(lambda: f.lines().get(3) and f.lines().get(2) == ("two", True), message=lambda: f.events)
    assert 1 not in f.lines()


def test_follow_streams_and_tail(api, attempt):
    spool = b"".join(frame(b"%d\n" % i, STDERR if i % 2 else STDOUT) for i in range(100))
    attempt.put(spool)
    attempt.final(spool)
    f = Follower(api, log_path(attempt, stream="stderr"))
    g = Follower(api, log_path(attempt, tail=5))
    until(f.ended)
    until(g.ended)
    assert [x[0] for x in f.lines().values()] == [str(i) for i in range(1, 100, 2)]
    assert sorted(g.lines()) == [96, 97, 98, 99, 100]


def test_follow_large_and_many(server, api, attempt):
    """Followers of a log that grows faster than they take it lose nothing."""
    followers = [Follower(api, log_path(attempt)) for _ in range(3)]
    spool, held = b"", 0
    for k in range(12):
        part = b"".join(frame(b"%d.%d %s\n" % (k, i, b"z" * 100)) for i in range(4000))
        spool += part
        held = attempt.put(part, held)
    attempt.final(spool)
    for f in followers:
        until(f.ended, 30, message=lambda: (len(f.lines()), f.error))
        assert len(f.lines()) == 48_000 and all(done for _, done in f.lines().values())
        assert f.lines()[48_000][0].startswith("11.3999 ")


def test_follow_a_step_before_its_attempt(server, api, attempt):
    server.sql(f"DELETE FROM attempt WHERE id = '{attempt.id}'")
    f = Follower(api, f"/api/v1/steps/{attempt.step}/log?follow=true")
    time.sleep(0.3)
    server.sql(f"""INSERT INTO attempt (id, step_id, run_id, project_id, number, epoch, worker_id, state, lost_after, delivered)
        SELECT '{attempt.id}', id, run_id, project_id, 1, {attempt.epoch}, '{attempt.worker.id}', 'running', 3600000000000, true
        FROM step WHERE id = '{attempt.step}'""")
    a = frames("hello\n")
    attempt.put(a)
    until(lambda: f.lines() == {1: ("hello", True)})
    server.sql(f"UPDATE attempt SET state = 'lost' WHERE id = '{attempt.id}'")
    until(f.ended)


def test_what_another_server_writes_is_followed(server, api, attempt):
    a, b = frames("one\n"), frames("two\n")
    attempt.put(a)
    f = Follower(api, log_path(attempt))
    until(lambda: len(f.lines()) == 1)
    # As another server would: the rows, and nothing said here.
    server.sql(f"""WITH l AS (UPDATE log SET length = {len(a + b)}, lines = 2 WHERE attempt_id = '{attempt.id}' RETURNING made)
        INSERT INTO log_chunk (made, attempt_id, start, length, line, open_stdout, open_stderr, open_system, time_from, data)
        SELECT c.made, c.attempt_id, {len(a)}, {len(b)}, 2, 0, 0, 0, c.time_from, c.data FROM log_chunk c, l
        WHERE c.attempt_id = '{attempt.id}'""")
    until(lambda: len(f.lines()) == 2, 5)
    assert attempt.put(b, len(a)) == len(a + b)  # the server finds that its memory is old
    c = frames("three\n")
    assert attempt.put(c, len(a + b)) == len(a + b + c)
    until(lambda: f.lines().get(3) == ("three", True))


def test_follow_is_cut_when_the_token_is_revoked(server, api, project, attempt):
    person = server.person("log-reader", project, "viewer")
    f = Follower(person, log_path(attempt))
    time.sleep(0.5)
    assert f.is_alive()
    api.delete("/api/v1/principals/log-reader", expect=204)
    f.join(8)
    assert not f.is_alive() and not f.ended()
