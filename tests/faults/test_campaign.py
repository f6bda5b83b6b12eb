"""kill -9 at random moments: of two servers, two workers, the Docker daemon (live-restore) and PostgreSQL, while a mixed load
runs. `SEED=…` repeats the choice of victims and of moments; a few kills in `make test`, 300 with `make soak`.

What must hold is checked after each phase, once all has ended (numbers as in the list of invariants of the design):

    I1, I2    each step has one terminal event, each attempt's events go forward          events of PostgreSQL
    I3        epochs grow                                                                 fsck
    I4        no two attempts of a step at once, nothing started twice                    witness (files; docker ps)
    I5        a log has the bytes that the command wrote, chunks tile                     witness, fsck --deep
    I6        files that steps wrote come back by digest                                  what was written, fsck --deep
    I7        a GPU is held by one command at a time                                      witness (flock), fsck
    I8        no container and no attempt folder is left                                  docker ps, the file system
    I9, I10   an acknowledged submission is there, and one run for each key               the submitter's list
    I12       one run for each instant of a schedule                                      runs of PostgreSQL
    I14       a project holds no more steps than its quota                                sampled while it runs
    I15       no connection is idle in a transaction for 10 s                             sampled while it runs
    I16       runs and their steps agree, nothing starts before what it needs             fsck
    I17       what was cancelled is over in time, or was over before                      witness
    I18       no token in a log or in the database                                        logs, a dump

(I11 and I13, chains of audit and receivers of webhooks, have no part in the product.) The witness is no part of the product:
commands append to files of the host what they do and when, by the host's uptime; containers are watched from outside."""
import contextlib
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from harness import ROOT, Client, Postgres, Second, Server, misbehaviour, program, until
from proxy import Balancer
from stack import ENDED, Worker, attempts_of, join_token, pipeline, raw_log, steps_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
from test_docker_runtime import DOCKERD, root_tar  # noqa: E402

SOAK = bool(os.environ.get("SOAK"))
KILLS = int(os.environ.get("KILLS") or (300 if SOAK else 7))
PHASE = 30  # kills, after which all is checked
QUOTA = 5  # steps at once: fewer than want to run
TOKEN = re.compile(rb"tdm_[a-z]{2}_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}")

SAY = """
w={witness}/{key}.{step}
say() {{ read -r t _ < /proc/uptime; echo "$TIDEMILL_ATTEMPT $1 $t" >> "$w"; }}
trap 'say term; exit 143' TERM
say start
"""
LINES = """
i=0
while [ $i -lt {lines} ]; do
	i=$((i + 1))
	echo "{key} line $i"
	say beat
	sleep {pause}
done
"""
GPU = """
exec 9>> "{witness}/lock.$CUDA_VISIBLE_DEVICES"
flock -n 9 || echo "{key} $CUDA_VISIBLE_DEVICES" >> {witness}/TWICE
"""
OUT = """
{{ printf {letter}; head -c {size} /dev/zero; }} > "$TIDEMILL_OUTPUT/o"
"""
END = "say end\nexit {code}\n"
TAKE = """
cmp "$TIDEMILL_INPUT_A/o" - <<EOF || exit 9
{letter}{letter}{letter}
EOF
"""
CONTAINER = """
trap 'exit 143' TERM
echo "start $(cat /proc/sys/kernel/random/uuid)"
i=0
while [ $i -lt {lines} ]; do i=$((i + 1)); echo "{key} line $i"; sleep {pause}; done
{{ printf {letter}; head -c {size} /dev/zero; }} > "$TIDEMILL_OUTPUT/o"
exit {code}
"""
TRACKED = f"""
import os, sys
sys.path.insert(0, {str(ROOT / 'examples/chicago')!r})
from tracking import Tracking
t = Tracking()
for i in range(int(sys.argv[1])):
    print("step", i, flush=True)
    t.metric("loss", 1 / (i + 1), i)
t.artifact("a.bin", sys.argv[2].encode() * 5000)
t.finish()
"""


class Load:
    """Submits runs of all kinds, one after the other in each thread; asks with the same key until there is an answer."""

    KINDS = ["short", "long", "stop", "gpu", "gpu", "tracked", "dag", "cancel", "docker", "docker"]

    def __init__(self, site, seed, phase):
        self.site, self.phase, self.stop = site, phase, threading.Event()
        self.runs, self.asked, self.wrong = {}, set(), []
        rng = random.Random(seed)
        kinds = [k for k in self.KINDS if k != "docker" or site.daemon]
        self.threads = [threading.Thread(target=self.begin, args=(kind, i, rng.random()), daemon=True) for i, kind in enumerate(kinds)]
        for t in self.threads:
            t.start()

    def begin(self, *args):
        try:
            self.loop(*args)
        except Exception as e:  # a thread's end must not go unnoticed
            self.wrong.append(f"{args[0]}: {e!r}")

    def loop(self, kind, number, seed):
        api, rng, n = self.site.client(), random.Random(seed), 0
        while not self.stop.is_set():
            n += 1
            key = f"{kind}-{self.phase}-{number}-{n}"
            known, steps = self.make(kind, key, rng)
            self.asked.add(key)
            run = self.ask(lambda: api.post("/api/v1/projects/jobs/runs", {"source": pipeline(kind, steps), "labels": {"key": key}},
                                            headers={"Idempotency-Key": key}), 201)
            if run is None:
                return
            self.runs[key] = {**known, "kind": kind, "run": run["id"]}
            self.wait(api, key, run["id"], rng)

    def make(self, kind, key, rng):
        """What is known of it beforehand, and its steps."""
        lines = rng.randrange(0, 5) if kind == "short" else 1200 if kind == "cancel" else rng.randrange(30, 90)
        known = {"code": rng.choice([0, 0, 0, 3, 255]), "lines": lines, "size": rng.choice([1, 4096, 300_000]),
                 "letter": rng.choice("abcdefgh")}
        fill = {**known, "witness": self.site.witness, "key": key, "pause": 0 if kind == "short" else 0.05, "step": "s"}
        step = {"resources": {"cpus": 0.1, "memory": "32MiB"}, "retries": {"backoff": {"first": "1s"}}}
        out = {"outputs": {"out": {"path": "o", "kind": "files"}}}
        if kind == "tracked":
            known["code"] = 0
            return known, {"s": {**step, "run": ["/usr/bin/python3", "-c", TRACKED, str(lines), known["letter"]]}}
        if kind == "docker":
            return known, {"s": {**step, **out, "runtimes": ["docker"], "image": "tidemill-test:1", "placement": {"pool": "docker"},
                                 "run": ["sh", "-c", CONTAINER.format(**fill)]}}
        if kind == "dag":
            known.update(code=0, size=4)
            a = (SAY + LINES + "printf '%s\\n' {letter}{letter}{letter} > \"$TIDEMILL_OUTPUT/o\"\n" + END).format(**{**fill, **known, "step": "a", "lines": 10})
            b = (SAY + TAKE + LINES + END).format(**{**fill, **known, "step": "b", "lines": 10})
            known["lines"] = 10
            return known, {"a": {**step, **out, "run": ["/bin/sh", "-c", a]}, "b": {**step, "needs": ["a"], "run": ["/bin/sh", "-c", b]}}
        script = SAY + (GPU if kind == "gpu" else "") + LINES + (OUT if kind == "long" else "") + END
        step["run"] = ["/bin/sh", "-c", script.format(**fill)]
        if kind == "long":
            step.update(out)
        if kind == "gpu":
            step["resources"]["gpus"] = 1
        if kind == "stop":
            step["on_lost"] = {"policy": "stop", "self_stop_after": "30s"}
        return known, {"s": step}

    def ask(self, call, right):
        """Until it is acknowledged, or the load ends."""
        while True:
            try:
                reply = call()
                if reply.status == right:
                    return reply.json()
                if misbehaviour(reply) and reply.json().get("code") != "in_progress":
                    self.wrong.append(misbehaviour(reply))
                    return None
            except TimeoutError as e:
                self.wrong.append(repr(e))
            except (OSError, http.client.HTTPException):
                pass
            if self.stop.wait(0.05):
                return None

    def wait(self, api, key, run, rng):
        patience = rng.uniform(0.5, 3) if key.startswith("cancel") else 20
        end = time.monotonic() + patience
        while time.monotonic() < end and not self.stop.wait(0.2):
            got = self.ask(lambda: api.get(f"/api/v1/runs/{run}"), 200)
            if got is None or got["state"] in ENDED:
                return
        if key.startswith("cancel"):
            until(lambda: self.ask(lambda: api.post(f"/api/v1/runs/{run}/cancel"), 200), 60, 0.1, f"{run} cannot be cancelled")
            self.runs[key]["cancelled"] = uptime()

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join(90)
            assert not t.is_alive(), "a submitter hangs"


def uptime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Sampler(threading.Thread):
    """Looks at the database and at the daemon while all goes on; what cannot be asked just now is not."""

    def __init__(self, site):
        super().__init__(daemon=True)
        self.site, self.over, self.wrong, self.samples, self.most = site, threading.Event(), [], 0, 0
        self.containers = {}  # attempt: ids of its containers that have run
        self.start()

    def run(self):
        while not self.over.wait(0.5):
            try:
                held, idle = self.site.one.sql(
                    "SELECT count(*) FROM attempt WHERE state IN ('assigned', 'preparing', 'running', 'finishing') UNION ALL "
                    "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND state_change < now() - interval '10 s'")
                self.samples += 1
                self.most = max(self.most, int(held))
                if int(held) > QUOTA:
                    self.wrong.append(f"I14: {held} steps at once")
                if int(idle) > 0:
                    self.wrong.append(f"I15: {idle} sessions are idle in a transaction")
            except (AssertionError, ValueError, subprocess.TimeoutExpired):
                pass
            for line in self.site.docker("ps", "-a", "--no-trunc", "--format", "{{.Names}} {{.ID}} {{.State}}") or []:
                name, container, state = line.split()
                if state != "created":  # one of a worker that was killed before it started it never runs
                    self.containers.setdefault(name, set()).add(container)


class Site:
    """The installation: PostgreSQL, two servers behind a balancer, a worker for processes, and one for containers."""

    def __enter__(self):
        self.witness = Path(tempfile.mkdtemp(prefix="tidemill-witness-", dir="/tmp"))
        self.witness.chmod(0o1777)
        self.parts = []
        self.pg = self.open(Postgres())
        self.one = self.open(Server(self.pg))
        self.two = self.open(Second(self.one))
        self.lb = self.open(Balancer([self.one.port, self.two.port]))
        self.daemon = self.open_daemon() if os.geteuid() == 0 and shutil.which("dockerd") else None
        admin = self.one.admin()
        admin.post("/api/v1/projects", {"name": "jobs"}, expect=201)
        admin.put("/api/v1/projects/jobs/quota", {"steps": {"nominal": QUOTA}}, expect=200)
        source = json.dumps({"apiVersion": "tidemill/v1", "kind": "Pipeline", "metadata": {"name": "tick"}, "spec": {
            "triggers": [{"schedule": {"cron": "* * * * *", "missed": "all"}}], "defaults": {"runtimes": ["process"]},
            "steps": {"s": {"run": ["true"], "resources": {"cpus": 0.1, "memory": "16MiB"}}}}})
        admin.put("/api/v1/projects/jobs/pipelines/tick", {"source": source}, expect=200)
        url, nvml = f"http://127.0.0.1:{self.lb.port}", program("libfake_nvml.so")
        assert nvml.exists(), f"{nvml} is not built: without it there are no GPUs"
        self.workers = [self.open(Worker(self.one, "processes", url=url, cpus=16, nvml_library=nvml, more={"FAKE_NVML_GPUS": "2"}))]
        if self.daemon:
            self.workers.append(self.open(Worker(
                self.one, "containers", url=url, cpus=16, runtimes="docker", docker_socket=f"{self.daemon}/docker.sock",
                docker_network="none", join_token=join_token(admin, pool="docker"), nvml_library="/nonexistent")))
        return self

    def open(self, part):
        part.patience = 120  # how fast a server comes back on a busy machine is not what is tested here
        part.__enter__()
        self.parts.append(part)
        return part

    def open_daemon(self):
        folder = tempfile.mkdtemp(prefix="tidemill-dockerd-", dir="/tmp")
        os.chmod(folder, 0o755)
        self.daemon = folder
        self.start_daemon()
        subprocess.run(["docker", "-H", f"unix://{folder}/docker.sock", "import", "-", "tidemill-test:1"], input=root_tar(),
                       check=True, capture_output=True, timeout=120)
        return folder

    def start_daemon(self):
        subprocess.run([DOCKERD, "start", self.daemon], check=True, capture_output=True, timeout=180)

    def kill_daemon(self):
        os.kill(int(Path(self.daemon, "dockerd.pid").read_text()), signal.SIGKILL)

    def end_shims(self):
        """containerd leaves the shims of containers that ended while it was dead: by their pids."""
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if f"{self.daemon}/exec/containerd".encode() in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

    def docker(self, *args):
        """Lines of its answer; None while there is none."""
        if not self.daemon:
            return None
        done = subprocess.run(["docker", "-H", f"unix://{self.daemon}/docker.sock", *args], capture_output=True, text=True)
        return done.stdout.splitlines() if done.returncode == 0 else None

    def client(self):
        return Client("127.0.0.1", self.lb.port, self.one.token)

    def __exit__(self, kind, *exc):
        for part in reversed(self.parts):
            try:
                part.__exit__(kind, *exc)
            except Exception as e:  # what else is open must be closed, too
                print(f"{part}: {e}")
        if self.daemon:
            subprocess.run([DOCKERD, "stop", self.daemon], timeout=180)
            self.end_shims()
            subprocess.run(["umount", "-R", *[x.split()[1] for x in open("/proc/mounts") if self.daemon in x]], capture_output=True)
            shutil.rmtree(self.daemon, ignore_errors=True)
        shutil.rmtree(self.witness, ignore_errors=True)


def restart(part, rng):
    part.kill()
    time.sleep(rng.uniform(0, 1))
    part.start()


def crash_postgres(site, rng):
    site.pg.crash()
    time.sleep(rng.uniform(0, 1))
    site.pg.start()


def kill_daemon(site, rng):
    site.kill_daemon()
    time.sleep(rng.uniform(0, 1))
    site.start_daemon()


def kill_servers(site, rng):
    site.one.kill()
    site.two.kill()
    time.sleep(rng.uniform(0, 1))
    for s in rng.sample([site.one, site.two], 2):
        s.start()


VICTIMS = {  # name: (how often, how many are killed, how)
    "server": (4, 1, lambda site, rng: restart(rng.choice([site.one, site.two]), rng)),
    "servers": (1, 2, kill_servers),
    "processes": (3, 1, lambda site, rng: restart(site.workers[0], rng)),
    "containers": (2, 1, lambda site, rng: restart(site.workers[1], rng)),
    "dockerd": (1, 1, kill_daemon),
    "postgres": (1, 1, crash_postgres),
}


def deck(site, rng):
    """Victims in random order, each in proportion, for ever."""
    names = [n for n, (often, _, _) in VICTIMS.items() for _ in range(often) if site.daemon or n not in ("containers", "dockerd")]
    while True:
        # Each of them early: a short campaign meets all.
        yield from sorted(set(names), key=lambda _: rng.random())
        yield from rng.sample(names, len(names))


# ---- what must hold ------------------------------------------------------------------------------
def spans(witness, key, step="s"):
    """Of each attempt: when it said what."""
    out, path = {}, witness / f"{key}.{step}"
    for line in path.read_text().splitlines() if path.exists() else []:
        attempt, what, at = line.split()
        seen = out.setdefault(attempt, {"said": [], "first": float(at)})
        seen["said"].append(what)
        seen["last"] = float(at)
    return out


def check_spans(said, seen, tries):
    order = sorted(seen.values(), key=lambda s: s["first"])
    assert all(a["last"] <= b["first"] for a, b in zip(order, order[1:])), f"I4: two at once: {said} {seen}"
    assert all(s["said"].count("start") == 1 for s in order), f"I4: started twice: {said} {seen}"
    assert set(seen) <= {a["id"] for a in tries}, f"I4: an attempt that nobody knows: {said} {seen}"


def check_attempts(said, tries):
    """Only the last one counts, and those before it ended by what was done to their hosts."""
    *before, last = sorted(tries, key=lambda a: a["number"])
    assert all(a["state"] in ("lost", "failed") and a["reason"] in ("worker_lost", "runtime_failed", "image_pull") for a in before), said
    assert last["log_complete"], said
    return last


def check_run(site, api, sampler, key, known):
    run = api.get(f"/api/v1/runs/{known['run']}", expect=200).json()
    kind, steps = known["kind"], steps_of(api, known["run"])
    for step in steps:
        tries = attempts_of(api, step["id"])
        said = f"{key} {known} {step['name']}: {run['state']} {step['state']} {tries}"
        seen = spans(site.witness, key, step["name"])
        if kind == "cancel":
            check_spans(said, seen, tries)
            if known.get("cancelled"):
                late = max([s["last"] for s in seen.values()], default=0) - known["cancelled"]
                assert late < 45, f"I17: it went on for {late:.1f} s after its end was asked for: {said}"
            continue
        wanted = "succeeded" if known["code"] == 0 else "failed"
        last = check_attempts(said, tries)
        assert step["state"] == last["state"] == wanted and last["exit_code"] == known["code"], said
        log = raw_log(api, step["id"], "stdout")
        if kind == "tracked":
            assert log == "".join(f"step {i}\n" for i in range(known["lines"])).encode(), said
            check_tracked(api, step, known, said)
            continue
        lines = "".join(f"{key} line {i + 1}\n" for i in range(known["lines"])).encode()
        if kind == "docker":
            first, _, rest = log.partition(b"\n")
            assert first.startswith(b"start ") and rest == lines, f"I5: {said} {log[-300:]}"
            for a in tries:
                assert len(sampler.containers.get(a["id"], ())) <= 1, f"I4: two containers: {said} {sampler.containers}"
        else:
            check_spans(said, seen, tries)
            assert seen[last["id"]]["said"] == ["start"] + ["beat"] * known["lines"] + ["end"], f"{said} {seen}"
            assert log == lines, f"I5: {said}"
        if kind in ("long", "docker") and wanted == "succeeded":
            body = api.get(f"/api/v1/steps/{step['id']}/outputs/out/o", expect=200).body
            assert body == known["letter"].encode() + bytes(known["size"]), f"I6: {said} {len(body)}"
    if kind != "cancel":
        assert run["state"] == ("succeeded" if known["code"] == 0 else "failed"), f"{key} {known} {run}"


def check_tracked(api, step, known, said):
    points = api.get(f"/api/2.0/mlflow/metrics/get-history?run_id={step['tracking_run']}&metric_key=loss", expect=200).json()
    assert [(p["step"], p["value"]) for p in points["metrics"]] == [(i, 1 / (i + 1)) for i in range(known["lines"])], said
    body = api.get(f"/api/v1/tracking-runs/{step['tracking_run']}/artifacts/a.bin", expect=200).body
    assert hashlib.sha256(body).digest() == hashlib.sha256(known["letter"].encode() * 5000).digest(), f"I6: {said}"


ONCE = """
SELECT 'I1: ' || subject || ' has ended ' || count(*) || ' times' FROM event
WHERE type IN ('step.succeeded', 'step.failed', 'step.cancelled', 'step.skipped') GROUP BY subject HAVING count(*) <> 1
UNION ALL SELECT 'I1: ' || s.id || ' has ended without a word' FROM step s WHERE s.state IN ('succeeded', 'failed', 'cancelled')
	AND NOT EXISTS (SELECT 1 FROM event e WHERE e.subject = s.id AND e.type = 'step.' || s.state)
UNION ALL SELECT 'I2: ' || subject || ' went back' FROM (SELECT subject, rank, lag(rank) OVER (PARTITION BY subject ORDER BY id) AS before
	FROM (SELECT id, subject, CASE type WHEN 'attempt.preparing' THEN 1 WHEN 'attempt.running' THEN 2 WHEN 'attempt.finishing' THEN 3
		WHEN 'attempt.ended' THEN 4 END AS rank FROM event WHERE type LIKE 'attempt.%') x WHERE rank IS NOT NULL) y WHERE rank <= before
"""


def check_ticks(site):
    """I12: none is missing, none comes twice. One whose server was killed over it comes again after two minutes."""
    until(lambda: site.one.sql("SELECT count(*) FROM trigger_due WHERE over_at IS NULL") == ["0"], 180, 0.5,
          lambda: f"I12: owed for ever: {site.one.sql('SELECT * FROM trigger_due WHERE over_at IS NULL')}")
    keys = site.one.sql("SELECT trigger_key FROM run WHERE pipeline = 'tick'")
    at = sorted(re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d", key)[0] for key in keys)
    minutes = [int(t[11:13]) * 60 + int(t[14:16]) for t in at]
    assert all((b - a) % 1440 == 1 for a, b in zip(minutes, minutes[1:])), f"I12: {keys}"


def check_secrets(site):
    """I18."""
    logs = [p.log_path.read_bytes() for p in (site.one, site.two, *site.workers)]
    dump = subprocess.run(["pg_dump", "--data-only", "--inserts", site.one.database], capture_output=True, timeout=300)
    assert dump.returncode == 0, dump.stderr
    for text in [*logs, dump.stdout]:
        found = TOKEN.search(text)
        assert not found, f"I18: a token: …{text[max(0, found.start() - 200):found.start() + 10]}"


def check(site, load, sampler):
    api = site.one.admin()
    assert not load.wrong, load.wrong[:5]
    assert sampler.is_alive(), "nothing is sampled any more"
    until(lambda: site.one.sql("SELECT count(*) FROM run WHERE state NOT IN ('succeeded', 'failed', 'cancelled') AND pipeline <> 'tick'") == ["0"], 150, 0.5,
          lambda: f"not all has ended: {site.one.sql('SELECT id, pipeline, state, labels FROM run WHERE ended_at IS NULL')} "
                  f"{site.one.sql('SELECT id, worker_id, state, reason, message FROM attempt WHERE ended_at IS NULL')}")
    counted = dict(line.rsplit("|", 1) for line in site.one.sql("SELECT labels ->> 'key', count(*) FROM run WHERE labels ? 'key' GROUP BY 1"))
    mine = {k: n for k, n in counted.items() if k in load.asked}
    assert set(mine.values()) <= {"1"}, f"I10: {mine}"
    assert set(load.runs) <= set(mine), f"I9: lost: {set(load.runs) - set(mine)}"
    for key, known in load.runs.items():
        check_run(site, api, sampler, key, known)
    assert not (site.witness / "TWICE").exists(), "I7: " + (site.witness / "TWICE").read_text()
    for w in site.workers:
        until(lambda: not os.listdir(w.dir / "work/attempts"), 60, 0.2, lambda: f"I8: {w.name} keeps {os.listdir(w.dir / 'work/attempts')}")
    if site.daemon:
        until(lambda: site.docker("ps", "-aq") == [], 60, 0.2, "I8: containers are left")
    assert site.one.sql(ONCE) == [] and not sampler.wrong, (site.one.sql(ONCE), sampler.wrong[:5])
    check_ticks(site)
    check_secrets(site)
    site.one.command("fsck", "--deep")


def test_kills_at_random_moments():
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1, 1 << 31))
    print(f"SEED={seed}")
    rng, done, phase, began = random.Random(seed), {}, 0, time.monotonic()
    with Site() as site:
        sampler, victims = Sampler(site), deck(site, rng)
        while sum(done.values()) < KILLS:
            phase += 1
            load, goal = Load(site, rng.random(), phase), min(KILLS, sum(done.values()) + PHASE)
            try:
                kinds = {k for k in Load.KINDS if k != "docker" or site.daemon}
                until(lambda: {r["kind"] for r in dict(load.runs).values()} == kinds, 60, 0.1, "not each kind is submitted")
                while sum(done.values()) < goal:
                    time.sleep(rng.uniform(0.1, 2))  # the random moment
                    name = next(victims)
                    VICTIMS[name][2](site, rng)
                    done[name] = done.get(name, 0) + VICTIMS[name][1]
            finally:
                load.end()
            check(site, load, sampler)
            print(f"{time.monotonic() - began:5.0f} s: {sum(done.values())} kills {done}, {len(load.runs)} runs, {sampler.samples} samples: all holds",
                  flush=True)
        sampler.over.set()
        sampler.join(30)
        assert sampler.samples > 3 and sampler.most == QUOTA, f"I14 was not tried: {sampler.samples} samples, {sampler.most} steps at most"
        assert sampler.containers or not site.daemon, "no container was seen"
