"""artifact.put_mb_s and artifact.get_mb_s: 1 GiB through tidemill-server, by curl, beside sha256sum and cp of the same file.

Medians of ROUNDS; each round has other bytes, so that nothing is stored twice. Also the server's greatest resident size,
which must not depend on the size of what passes through. usage: V=release artifact.py [MIB]"""
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
os.environ.setdefault("V", "release")
import harness  # noqa: E402

ROUNDS = 3
SIZE = (int(sys.argv[1]) if len(sys.argv) > 1 else 1024) << 20
RATIO = 0.5  # of the floor, at least
RSS_MAX_MB = 64


def seconds(*argv):
    begin = time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def make_file(path):
    with open(path, "wb") as f:
        for _ in range(SIZE >> 20):
            f.write(os.urandom(1 << 20))


def renew(path):
    """Other bytes, hence another digest."""
    with open(path, "r+b") as f:
        f.write(os.urandom(4096))
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def curl(server, url, *options):
    begin = time.monotonic()
    subprocess.run(["curl", "-sSf", "-o", "/dev/null", "-H", f"Authorization: Bearer {server.token}", *options,
                    f"http://127.0.0.1:{server.port}{url}"], check=True)
    return time.monotonic() - begin


def peak_mb(server):
    for line in Path(f"/proc/{server.proc.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


def report(name, value, unit, goal, ok, floor=None):
    print(json.dumps({"name": name, "value": round(value, 1), "unit": unit,
                      "floor": None if floor is None else round(floor, 1),
                      "ratio": None if floor is None else round(value / floor, 3), "goal": goal, "ok": bool(ok)}))


def main():
    floors, puts, gets = [], [], []
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="tidemill-bench-") as folder, harness.Postgres() as pg, \
            harness.Server(pg) as server:
        path = f"{folder}/file"
        make_file(path)
        api = server.admin()
        base = "/api/v1/projects/bench"
        api.post("/api/v1/projects", {"name": "bench"}, expect=201)
        api.post(f"{base}/datasets", {"name": "d"}, expect=201)
        for i in range(ROUNDS):
            digest = renew(path)
            floors.append(seconds("sha256sum", path) + seconds("cp", path, path + ".copy"))
            os.unlink(path + ".copy")
            puts.append(curl(server, f"{base}/blobs/{digest}", "-T", path))
            version = api.post(f"{base}/datasets/d/versions", {"files": [{"path": "f", "digest": digest, "size": SIZE}]},
                               expect=201).json()["number"]
            gets.append(curl(server, f"{base}/datasets/d/versions/{version}/files/f"))
        peak = peak_mb(server)
    floor, put, get = (SIZE / 1e6 / statistics.median(x) for x in (floors, puts, gets))
    report("artifact.put_mb_s", put, "MB/s", RATIO, put >= RATIO * floor, floor)
    report("artifact.get_mb_s", get, "MB/s", RATIO, get >= RATIO * floor, floor)
    report("artifact.server_peak_mb", peak, "MB", RSS_MAX_MB, peak <= RSS_MAX_MB)


main()
