"""Runs the benchmarks one after the other, prints their lines, and writes them to build/bench.json.

usage: run.py [PREFIX]    only the parts or lines whose name begins so. Exit 1 when a part could not be measured; a goal that was
missed is said in its line, and fails nothing: machines differ."""
import json
import os
import platform
import signal
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
QUEUED, ACTIVE = 100_000, 10_000
HANDS, CLIENTS = 100, 20  # workers of short steps; clients of the tracking API
PEER = ROOT / "build/mlflow/bin/mlflow"  # MLflow's own server, where somebody has put it (README.md)
ONLY = sys.argv[1] if len(sys.argv) > 1 else ""


def output(*argv):
    return subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout


def lines(*argv):
    return [json.loads(x) for x in output(*argv).splitlines() if x.startswith("{")]


def line(name, value, unit, goal, ok, floor=None, **more):
    return {"name": name, "value": round(value, 3), "unit": unit, "floor": floor,
            "ratio": round(value / floor, 3) if floor else None, "goal": goal, "ok": ok, **more}


def load(server, *argv):
    if server.token is None:
        server.admin().post("/api/v1/projects", {"name": "bench"}, expect=201)
    argv = [argv[0], server.port, "bench", server.token, *argv[1:]]
    return json.loads(output(BUILD / "bench_load", *argv))


def track(port, token, mode, clients, points=1):
    return json.loads(output(BUILD / "bench_track", mode, port, token, clients, SECONDS, points))


def drift():
    found = lines(BUILD / "bench_drift")
    rate = next(x["value"] for x in found if x["name"].startswith("drift.values"))
    return found + lines("/usr/bin/python3", BENCH / "drift_scipy.py", rate)


def submit():
    with harness.Postgres() as pg, harness.Server(pg, log_level="warn") as server:
        floor = json.loads(output(BUILD / "bench_floor_pg", server.database))
        got = load(server, "submit", CONNECTIONS, SECONDS)
        rows = floor["unnest_rows_per_s"]
        # The floor is narrow rows of one table; a submission is rows of several.
        written = int(server.sql("SELECT sum(n) FROM (SELECT count(*) n FROM run UNION ALL SELECT count(*) FROM step"
                                 " UNION ALL SELECT count(*) FROM tracking_run UNION ALL SELECT count(*) FROM queue"
                                 " UNION ALL SELECT count(*) FROM event WHERE project_id IS NOT NULL) x")[0])
        return [line("submit.per_s", got["per_s"], "1/s", "2000 and 50 %", got["per_s"] >= max(2000, rows / 2), rows,
                     rows_per_s=round(got["per_s"] * written / got["accepted"]), commits_per_s=floor["commits_per_s"])]


def restart():
    with harness.Postgres() as pg, harness.Server(pg, log_level="warn") as server:
        load(server, "fill", QUEUED // 20, 20)
        assert int(server.sql("SELECT count(*) FROM queue")[0]) == QUEUED
        server.kill()
        begin = time.monotonic()
        server.start()
        ready = time.monotonic() - begin
        return [line("restart.ready_s", ready, "s", 2, ready < 2, queued=QUEUED, after="kill -9")]


def dispatch():
    with harness.Postgres() as pg, harness.Server(pg, log_level="warn", max_connections_per_ip=WORKERS + 500) as server:
        floor = json.loads(output(BUILD / "bench_floor_pg", server.database))
        got = load(server, "dispatch", WORKERS, RATE, SECONDS)
        assert got["assigned"] == got["accepted"] and got["refused"] == 0, got
        more = {"rate": got["per_s"], "workers": WORKERS, "commit_p50_ms": floor["commit_p50_ms"]}
    with harness.Postgres() as pg, harness.Server(pg, log_level="warn") as server:
        rows = floor["unnest_rows_per_s"]
        done = load(server, "finish", HANDS, 500, 10)
        assert done["finished"] == 5000, done
        per_s = done["finished"] / done["seconds"]
        return [line("dispatch.p50_ms", got["p50_ms"], "ms", 5, got["p50_ms"] < 5, **more),
                line("dispatch.p99_ms", got["p99_ms"], "ms", 25, got["p99_ms"] < 25, **more),
                line("dispatch.per_s", per_s, "1/s", "2000 and 50 %", per_s >= max(2000, rows / 2), rows, workers=HANDS)]


def held():
    """The server's memory while workers hold steps that run."""
    with harness.Postgres() as pg, harness.Server(pg, log_level="warn", max_connections_per_ip=WORKERS + 500) as server:
        server.admin().post("/api/v1/projects", {"name": "bench"}, expect=201)
        argv = [BUILD / "bench_load", "hold", server.port, "bench", server.token, WORKERS, ACTIVE // 10, 10]
        with subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as holder:
            try:
                said = [x.strip() for x in iter(holder.stderr.readline, "held\n") if x]
                running = int(server.sql("SELECT count(*) FROM attempt WHERE state = 'running'")[0])
                assert running == ACTIVE, (running, said)
                used = server.rss_kib() / 1024
            finally:
                holder.stdin.close()
        return [line("server.rss_mb", used, "MiB", 100, used < 100, workers=WORKERS, active=running)]


def metrics():
    with harness.Postgres() as pg, harness.Server(pg, log_level="warn") as server:
        floor = json.loads(output(BUILD / "bench_floor_pg", server.database))["points_per_s"]
        server.admin().post("/api/v1/projects", {"name": "bench"}, expect=201)
        got = track(server.port, server.token, "batch", 8, 1000)
        return [line("metrics.points_per_s", got["points_per_s"], "1/s", "50 %", got["points_per_s"] >= floor / 2, floor)]


class Peer:
    """MLflow's own server on a database of its own, or None where it is not installed."""

    def __init__(self, pg):
        self.pg, self.port, self.proc = pg, harness.free_port(), None

    def __enter__(self):
        if not PEER.exists():
            return None
        url = self.pg.database().replace("postgresql://", "postgresql+psycopg2://", 1)
        self.proc = subprocess.Popen([PEER, "server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "2",
                                      "--backend-store-uri", url, "--allowed-hosts", "*", "--default-artifact-root", "/nowhere",
                                      "--uvicorn-opts", "--timeout-worker-healthcheck 60 --timeout-keep-alive 120"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        harness.until(self.serves, 180, 0.5, "MLflow's server does not start")
        return self

    def serves(self):
        try:
            return harness.Client("127.0.0.1", self.port).get("/health").status == 200
        except OSError:
            return False

    def __exit__(self, *exc):
        if self.proc is not None:
            os.killpg(self.proc.pid, signal.SIGKILL)
            self.proc.wait(10)


CALLS = (("mlflow.log_metric_per_s", "per_s", "1/s", ("metric", CLIENTS)),
         ("mlflow.log_batch_10_ms", "mean_ms", "ms", ("batch", CLIENTS, 10)),
         ("mlflow.log_batch_1000_ms", "mean_ms", "ms", ("batch", CLIENTS, 1000)),
         ("mlflow.create_run_per_s", "per_s", "1/s", ("create", CLIENTS)),
         ("mlflow.get_history_25k_ms", "mean_ms", "ms", ("history", 2)))


def mlflow():
    found = []
    with harness.Postgres() as pg, harness.Server(pg, log_level="warn") as server:
        floor = json.loads(output(BUILD / "bench_floor_pg", server.database))
        # The same rows by libpq: 20 clients' points in a commit, a batch of 1,000 in one.
        floors = {"mlflow.log_metric_per_s": floor["points_20_per_s"], "mlflow.log_batch_1000_ms": floor["points_1000_ms"]}
        server.admin().post("/api/v1/projects", {"name": "bench"}, expect=201)
        for name, value, unit, args in CALLS:
            found.append(line(name, track(server.port, server.token, *args)[value], unit, "10 x MLflow's", None, floors.get(name)))
    with harness.Postgres() as pg, Peer(pg) as peer:
        for x, (_, value, unit, args) in zip(found, CALLS):
            if peer is None:
                break
            x["peer"] = track(peer.port, "", *args)[value]
            x["times"] = round(x["value"] / x["peer"] if unit == "1/s" else x["peer"] / x["value"], 1)
            x["ok"] = x["times"] >= 10
    return found


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
    "restart": restart,
    "dispatch": dispatch,
    "server": held,
    "metrics": metrics,
    "mlflow": mlflow,
    "log": lambda: lines("/usr/bin/python3", BENCH / "log.py", 64, 5),
    "artifact": lambda: lines("/usr/bin/python3", BENCH / "artifact.py", 1024),
    "rss": rss,
}


# Lines that a part makes and that do not begin with its name.
ALSO = {"rss": ("server.rss_idle_mb", "worker"), "server": ("server.rss_mb",)}


def wanted(part):
    names = (part, *ALSO.get(part, ()))
    return not ONLY or any(n.startswith(ONLY) or ONLY.startswith(n) for n in names)


def show(x):
    beside = f"   floor {x['floor']:.4g}" if x.get("floor") else ""
    beside += f"   MLflow's {x['peer']:.4g}" if "peer" in x else ""
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
