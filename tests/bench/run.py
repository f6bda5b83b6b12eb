"""Runs the benchmarks one after the other, prints their lines, and writes them to build/bench.json.

usage: run.py [PREFIX]    only the parts or lines whose name begins so. Exit 1 when a part could not be measured; a goal that was
missed is said in its line, and fails nothing: machines differ."""
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
os.environ.setdefault("V", "release")
import harness  # noqa: E402
import stack  # noqa: E402

BUILD, BENCH = ROOT / "build/release", ROOT / "tests/bench"
RATE, WORKERS, SECONDS, CONNECTIONS = 500, 1000, 5, 64
QUEUED, ACTIVE = 100_000, 10_000  # of the goals; a line measured with fewer is not judged
ONLY = sys.argv[1] if len(sys.argv) > 1 else ""


def output(*argv):
    return subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout


def lines(*argv):
    return [json.loads(x) for x in output(*argv).splitlines() if x.startswith("{")]


def line(name, value, unit, goal, ok, floor=None, **more):
    return {"name": name, "value": round(value, 3), "unit": unit, "floor": floor,
            "ratio": round(value / floor, 3) if floor else None, "goal": goal, "ok": ok, **more}


def load(server, *argv):
    server.admin().post("/api/v1/projects", {"name": "bench"}, expect=201)
    argv = [argv[0], server.port, "bench", server.token, *argv[1:]]
    return json.loads(output(BUILD / "bench_load", *argv))


def drift():
    found = lines(BUILD / "bench_drift")
    rate = next(x["value"] for x in found if x["name"].startswith("drift.values"))
    return found + lines("/usr/bin/python3", BENCH / "drift_scipy.py", rate)


def submit():
    with harness.Postgres() as pg, harness.Server(pg, log_level="warn") as server:
        floor = json.loads(output(BUILD / "bench_floor_pg", server.database))
        got = load(server, "submit", CONNECTIONS, SECONDS)
        rows = floor["unnest_rows_per_s"]
        begin = time.monotonic()
        server.kill()
        server.start()
        ready = time.monotonic() - begin
        runs = int(server.sql("SELECT count(*) FROM run")[0])
        # The floor is what unnest alone writes of one narrow row; a run is rows of seven tables.
        return [line("submit.per_s", got["per_s"], "1/s", "2000 and 50 %", got["per_s"] >= max(2000, rows / 2), rows,
                     commits_per_s=floor["commits_per_s"]),
                line("restart.ready_s", ready, "s", f"2, with {QUEUED}", ready < 2 if runs >= QUEUED else None, runs=runs, after="kill -9")]


def dispatch():
    with harness.Postgres() as pg, harness.Server(pg, log_level="warn", max_connections_per_ip=WORKERS + 500) as server:
        floor = json.loads(output(BUILD / "bench_floor_pg", server.database))
        got = load(server, "dispatch", WORKERS, RATE, SECONDS)
        assert got["assigned"] == got["accepted"] and got["refused"] == 0, got
        more = {"rate": RATE, "workers": WORKERS, "commit_p50_ms": floor["commit_p50_ms"]}
        return [line("dispatch.p50_ms", got["p50_ms"], "ms", 5, got["p50_ms"] < 5, **more),
                line("dispatch.p99_ms", got["p99_ms"], "ms", 25, got["p99_ms"] < 25, **more),
                line("server.rss_mb", server.rss_kib() / 1024, "MiB", f"100, with {ACTIVE}", None, workers=WORKERS, active=got["assigned"])]


def rss_kib(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(x.split()[1] for x in text.splitlines() if x.startswith("VmRSS:")))


def rss():
    with harness.Postgres() as pg, harness.Server(pg) as server:
        at_rest = server.rss_kib() / 1024
        with stack.Worker(server, "bench") as worker:
            used = rss_kib(worker.proc.pid) / 1024
        return [line("server.rss_idle_mb", at_rest, "MiB", None, None), line("worker.rss_mb", used, "MiB", 15, used < 15)]


PARTS = {
    "http": lambda: lines(BUILD / "bench_http"),
    "sched": lambda: lines(BUILD / "bench_place"),
    "drift": drift,
    "submit": submit,
    "dispatch": dispatch,
    "log": lambda: lines("/usr/bin/python3", BENCH / "log.py", 64, 5),
    "artifact": lambda: lines("/usr/bin/python3", BENCH / "artifact.py", 512),
    "rss": rss,
}


# Lines that a part makes and that do not begin with its name.
ALSO = {"submit": ("restart",), "dispatch": ("server.rss_mb",), "rss": ("server.rss_idle_mb", "worker")}


def wanted(part):
    names = (part, *ALSO.get(part, ()))
    return not ONLY or any(n.startswith(ONLY) or ONLY.startswith(n) for n in names)


def show(x):
    beside = f"   floor {x['floor']:.4g}" if x.get("floor") else ""
    goal = f"   goal {x['goal']}" if x.get("goal") is not None else ""
    print(f"{x['name']:<28} {x['value']:>12.4g} {x['unit']:<10}{beside}{goal}   { {True: '', False: 'MISSED', None: 'not judged'}[x.get('ok', True)] }", flush=True)


def main():
    found, failed = {}, {}
    load_before = os.getloadavg()[0]
    for part, run in PARTS.items():
        if not wanted(part):
            continue
        try:
            for x in run():
                if not ONLY or x["name"].startswith(ONLY) or part.startswith(ONLY):
                    found[x["name"]] = x
                    show(x)
        except (OSError, AssertionError, ValueError, KeyError, subprocess.SubprocessError) as e:
            failed[part] = str(e)[-500:]
            print(f"{part}: could not be measured: {failed[part]}", flush=True)
    machine = {"cpus": os.cpu_count(), "kernel": platform.release(), "load_before": load_before}
    if not found and not failed:
        print(f'run.py: no line begins with "{ONLY}"; the parts are {", ".join(PARTS)}', file=sys.stderr)
        return 2
    (ROOT / "build/bench.json").write_text(json.dumps({"machine": machine, "lines": found, "failed": failed}, indent=1) + "\n")
    print("written to build/bench.json")
    return 1 if failed else 0


sys.exit(main())
