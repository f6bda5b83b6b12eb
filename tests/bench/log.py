"""log.ingest_mb_s, log.read_mb_s, log.live_p99_ms, log.stored_ratio: logs through tidemill-server.

The text is that of a training: progress bars, losses, warnings. Ingest: pieces of 1 MiB to four attempts at once, as the
worker sends them; the floor is `zstd -1` of the same bytes and a write of the same bytes with fsync, one after the other.
Reading: the raw download of all. Live: 200 attempts write two pieces a second each, ten are followed; the time from before
the request that carries a line until the line is in a follower's hand. usage: V=release log.py [MIB [SECONDS]]"""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
os.environ.setdefault("V", "release")
import harness  # noqa: E402
import spool  # noqa: E402

MIB = int(sys.argv[1]) if len(sys.argv) > 1 else 128
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 10
WRITERS, PIECE, ATTEMPTS, FOLLOWED, ROUNDS = 4, 1 << 20, 200, 10, 3


def text(size, seed):
    """Plain lines of a training, about 110 bytes each."""
    rng, out, n = random.Random(seed), [], 0
    step = 0
    while n < size:
        step += 1
        line = (f"2026-11-30 03:{step // 60 % 60:02d}:{step % 60:02d},{rng.randrange(1000):03d} INFO train step={step} "
                f"loss={rng.random() * 3:.5f} lr={1e-3 * 0.999 ** step:.3e} tokens/s={rng.randrange(80_000, 90_000)} "
                f"grad_norm={rng.random():.4f}\n").encode()
        out.append(line)
        n += len(line)
    return b"".join(out)


def frames_of(data):
    """Frames as the init writes them: what was in the pipe, some lines at a time."""
    return [spool.frame(data[i:i + 4096]) for i in range(0, len(data), 4096)]


def pieces_of(data):
    out, piece, n = [], [], 0
    for frame in frames_of(data):
        piece.append(frame)
        n += len(frame)
        if n >= PIECE:
            out.append(b"".join(piece))
            piece, n = [], 0
    if piece:
        out.append(b"".join(piece))
    return out


def floor_s(data, folder):
    path = f"{folder}/raw"
    begin = time.monotonic()
    with open(path, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    subprocess.run(["zstd", "-1", "-q", "-f", "--single-thread", path, "-o", path + ".zst"], check=True)
    return time.monotonic() - begin


def ingest_s(attempts, all_pieces):
    def ship(attempt, pieces):
        client, held = attempt.worker.api.with_token(attempt.worker.api.token), 0
        for p in pieces:
            held = attempt.put(p, held, api=client)
        client.close()

    threads = [threading.Thread(target=ship, args=pair) for pair in zip(attempts, all_pieces)]
    begin = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return time.monotonic() - begin


def read_s(server, attempts):
    begin = time.monotonic()
    for a in attempts:
        subprocess.run(["curl", "-sSf", "-o", "/dev/null", "-H", f"Authorization: Bearer {server.token}",
                        f"http://127.0.0.1:{server.port}/api/v1/attempts/{a.id}/log?raw=true"], check=True)
    return time.monotonic() - begin


def follow(api, attempt, delays, stop):
    try:
        for _, event, data in spool.sse(api, f"/api/v1/attempts/{attempt.id}/log?follow=true", timeout=30):
            now = time.monotonic()
            delays.extend(now - float(line["text"].split()[0]) for line in data.get("lines", []))
            if stop.is_set():
                return
    except OSError:
        pass


def live_p99_ms(server, worker, project_id):
    attempts = [spool.Attempt(server, worker, project_id) for _ in range(ATTEMPTS)]
    held, delays, stop, end = dict.fromkeys(attempts, 0), [], threading.Event(), time.monotonic() + SECONDS

    def write(mine):
        client = worker.api.with_token(worker.api.token)
        while time.monotonic() < end:
            due = time.monotonic() + 0.5
            for a in mine:
                line = b"%.6f a line of a training that is followed live\n" % time.monotonic()
                held[a] = a.put(spool.frame(line), held[a], api=client)
            time.sleep(max(0, due - time.monotonic()))
        client.close()

    api = server.admin()
    for a in attempts[:: ATTEMPTS // FOLLOWED]:
        threading.Thread(target=follow, args=(api, a, delays, stop), daemon=True).start()
    writers = [threading.Thread(target=write, args=(attempts[k::WRITERS],)) for k in range(WRITERS)]
    for t in writers:
        t.start()
    for t in writers:
        t.join()
    time.sleep(0.5)
    stop.set()
    delays.sort()
    assert len(delays) > FOLLOWED * SECONDS, f"only {len(delays)} lines came"
    return delays[int(len(delays) * 0.99)] * 1000


def report(name, value, unit, goal, ok, floor=None):
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit,
                      "floor": None if floor is None else round(floor, 3),
                      "ratio": None if floor is None else round(value / floor, 3), "goal": goal, "ok": bool(ok)}))


def main():
    data = [text(MIB * (1 << 20) // WRITERS, k) for k in range(WRITERS)]
    pieces = [pieces_of(d) for d in data]
    size = sum(len(d) for d in data)
    floors, puts, reads = [], [], []
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="tidemill-bench-") as folder, harness.Postgres() as pg, \
            harness.Server(pg) as server:
        api = server.admin()
        project_id = api.post("/api/v1/projects", {"name": "bench"}, expect=201).json()["id"]
        worker = spool.Worker(server, "bench-worker")
        whole = b"".join(data)
        for _ in range(ROUNDS):
            floors.append(floor_s(whole, folder))
            attempts = [spool.Attempt(server, worker, project_id) for _ in range(WRITERS)]
            puts.append(ingest_s(attempts, pieces))
            reads.append(read_s(server, attempts))
        zstd_ratio = os.path.getsize(f"{folder}/raw.zst") / size
        stored, raw = server.sql("SELECT sum(length(data)), sum(length) FROM log_chunk")[0].split("|")
        p99 = live_p99_ms(server, worker, project_id)
    floor, put, read = (size / 1e6 / statistics.median(x) for x in (floors, puts, reads))
    report("log.ingest_mb_s", put, "MB/s", 0.5, put >= 0.5 * floor and put >= 20, floor)
    report("log.read_mb_s", read, "MB/s", 0.5, read >= 0.5 * floor, floor)
    report("log.stored_ratio", int(stored) / int(raw), "", 0.25, int(stored) / int(raw) <= 0.25, zstd_ratio)
    report("log.live_p99_ms", p99, "ms", 500, p99 < 500)


main()
