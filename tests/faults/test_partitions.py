"""Workers that are cut off: shorter and longer than their steps' `on_lost` allows, with the worker alive and dead.

Each worker lives in a network namespace of its own. A witness that is no part of the product tells which attempt of a step
ran when: every command appends its start, a beat every tenth of a second and its end to a file of the host, by
CLOCK_MONOTONIC. What must hold: with `stop` there is never a moment at which two attempts run; with `keep` the second one
begins no earlier than `lost_after` after the cut; who comes back early goes on as if nothing had been; who comes back late
ends, and changes nothing."""
import contextlib
import os
import time

import pytest

import netns
from harness import Postgres, Server, until
from stack import ENDED, Wire, Worker, attempts_of, pipeline, raw_log, steps_of, submit

pytestmark = pytest.mark.skipif(netns.missing() is not None, reason=str(netns.missing()))

COMMAND = """
import os, signal, sys, time
folder, name, attempt = sys.argv[1], os.environ["TIDEMILL_STEP"], os.environ["TIDEMILL_ATTEMPT"]
def say(what):
    fd = os.open(folder + "/" + name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, ("%s %s %.3f\\n" % (attempt, what, time.clock_gettime(time.CLOCK_MONOTONIC))).encode())
    os.close(fd)
def term(*_):
    say("term")
    sys.exit(3)
signal.signal(signal.SIGTERM, term)
say("start")
n = 0
while not os.path.exists(folder + "/end." + name):
    say("beat")
    print(name, attempt, "line", n, flush=True)
    n += 1
    time.sleep(0.1)
code = int(open(folder + "/end." + name).read())
say("end")
sys.exit(code)
"""
STEPS = {  # name: its policy
    "early_keep": {"policy": "keep", "lost_after": "60s"},
    "late_keep": {"policy": "keep", "lost_after": "10s"},
    "early_stop": {"policy": "stop", "self_stop_after": "20s"},
    "late_stop": {"policy": "stop", "self_stop_after": "10s"},
    "dead_stop": {"policy": "stop", "self_stop_after": "10s"},
}
MARGIN = 3.0  # seconds: a command that was asked to end has ended, on a busy machine


class Wide(Server):
    """Not only at the loopback interface."""

    def env(self):
        return {**super().env(), "TIDEMILL_LISTEN": f"0.0.0.0:{self.port}", "TIDEMILL_INSECURE_HTTP": "1"}


class Witness:
    def __init__(self, folder):
        self.folder = folder

    def spans(self, step):
        """What is known of each attempt of the step, in the order of their starts: its id, and when which thing was said."""
        out = {}
        path = self.folder / step
        for line in path.read_text().splitlines() if path.exists() else []:
            attempt, what, at = line.split()
            seen = out.setdefault(attempt, {"id": attempt, "first": float(at)})
            seen[what] = seen["last"] = float(at)
        return sorted(out.values(), key=lambda s: s["first"])

    def beats(self, step):
        return [s for s in self.spans(step) if "beat" in s]

    def end(self, step, code):
        (self.folder / f"end.{step}.new").write_text(str(code))
        (self.folder / f"end.{step}.new").rename(self.folder / f"end.{step}")


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def wait_until(moment):
    until(lambda: now() >= moment, 120, 0.05)


def check_result(api, witness, step, code, attempts):
    """The last attempt's exit code and log are those that the witness has seen; earlier ones are lost."""
    until(lambda: api.get(f"/api/v1/runs/{step['run_id']}", expect=200).json()["state"] in ENDED, 60, 0.1)
    tries = attempts_of(api, step["id"])
    said = f"{step['name']}: {tries}"
    assert len(tries) == attempts and [a["state"] for a in sorted(tries, key=lambda a: a["number"])[:-1]] == ["lost"] * (attempts - 1), said
    last = max(tries, key=lambda a: a["number"])
    assert (last["exit_code"], last["log_complete"]) == (code, True), said
    assert last["state"] == ("succeeded" if code == 0 else "failed"), said
    lines = sum(1 for line in (witness.folder / step["name"]).read_text().splitlines() if line.startswith(last["id"] + " beat"))
    wanted = "".join(f"{step['name']} {last['id']} line {n}\n" for n in range(lines)).encode()
    assert raw_log(api, step["id"], "stdout") == wanted, said


def test_workers_that_are_cut_off(witness):
    with contextlib.ExitStack() as stack:
        pg = stack.enter_context(Postgres())
        server = stack.enter_context(Wide(pg))
        api, seen = server.admin(), Witness(witness)
        api.post("/api/v1/projects", {"name": "jobs"}, expect=201)
        workers = {}
        for i in range(len(STEPS)):
            ns = stack.enter_context(netns.Namespace())
            w = stack.enter_context(Worker(server, f"w{i}", url=f"http://{ns.host}:{server.port}", prefix=ns.prefix,
                                           insecure_http=1, cpus=1))
            workers[w.id()] = (w, ns)
        runs = [submit(api, "jobs", pipeline(name.replace("_", "-"), {name: {
            "run": ["/usr/bin/python3", "-c", COMMAND, str(witness)], "resources": {"cpus": 1, "memory": "32MiB"},
            "on_lost": policy, "retries": {"backoff": {"first": "1s"}}}}))["id"] for name, policy in STEPS.items()]
        for name in STEPS:
            until(lambda: seen.beats(name), 40, 0.05, f"{name} does not begin")
        steps = {s["name"]: {**s, "run_id": run} for run in runs for s in steps_of(api, run)}
        first = {name: attempts_of(api, s["id"])[0] for name, s in steps.items()}
        place = {name: workers[a["worker_id"]] for name, a in first.items()}
        spare = stack.enter_context(Worker(server, "spare", cpus=8))

        for w, ns in place.values():
            ns.cut()
        cut = now()
        place["dead_stop"][0].kill()
        wait_until(cut + 6)
        for name in ("early_keep", "early_stop"):
            place[name][1].heal()

        # With keep, another one begins after lost_after, and beside the old one, which nobody can reach.
        until(lambda: len(seen.beats("late_keep")) == 2, 60, 0.1, "late_keep is not given to another worker")
        old, new = seen.beats("late_keep")
        assert new["first"] - cut >= 10, f"given up after {new['first'] - cut:.2f} s"
        assert old["last"] > new["first"] - 1 and "term" not in old, "the old one has not gone on"
        place["late_keep"][1].heal()
        until(lambda: "term" in seen.spans("late_keep")[0], 60, 0.1, "who is superseded is not told so")

        # With stop, the old one is over before the new one begins, whether its worker lives or not.
        for name in ("late_stop", "dead_stop"):
            until(lambda: len(seen.beats(name)) == 2, 90, 0.1, f"{name} is not given to another worker")
            old, new = seen.beats(name)
            print(f"{name}: ended {old['last'] - cut:.2f} s after the cut, the next began {new['first'] - cut:.2f} s after it")
            assert old["last"] < new["first"], f"{name}: two attempts ran at once: {old}, {new}"
            assert 5 < old["last"] - cut < 10 + MARGIN, f"{name}: the deadman came after {old['last'] - cut:.2f} s"
        for name in ("late_stop", "dead_stop"):
            place[name][1].heal()
        place["dead_stop"][0].start()

        for name in STEPS:
            until(lambda: seen.spans(name)[-1]["last"] > now() - 1, 10, 0.05, f"{name} does not run any more")
            seen.end(name, 7 if name.endswith("keep") else 0)
        for name, s in steps.items():
            early = name.startswith("early")
            check_result(api, seen, s, 7 if name.endswith("keep") else 0, 1 if early else 2)
            assert len(seen.spans(name)) == (1 if early else 2), f"{name} was started {len(seen.spans(name))} times"
        for w, _ in list(place.values()) + [(spare, None)]:
            until(lambda: not os.listdir(w.dir / "work/attempts"), 60, 0.2, f"{w.name} keeps what is over")
            w.stop()
        server.command("fsck", "--deep")


def test_what_a_silent_worker_was_never_told_of_goes_to_another():
    """Nobody waits for lost_after there: the worker cannot have begun."""
    with Postgres() as pg, Server(pg, worker_offline_after="3s") as server:
        api = server.admin()
        api.post("/api/v1/projects", {"name": "jobs"}, expect=201)
        one = Wire(server, "one")
        one.sync()
        run = submit(api, "jobs", pipeline("p", {"s": {"run": ["true"], "retries": {"backoff": {"first": "0s"}}}}))["id"]
        [step] = steps_of(api, run)
        until(lambda: attempts_of(api, step["id"]), 10)
        two = Wire(server, "two")
        task = two.take(run, 30)
        first, second = sorted(attempts_of(api, step["id"]), key=lambda a: a["number"])
        assert (first["worker_id"], first["state"], first["reason"]) == (one.id, "lost", "worker_lost"), first
        assert task["attempt"] == second["id"]
        one.sync()
        assert not one.assigned, "it was given what is another's by now"
        two.finish(task["attempt"])
        until(lambda: api.get(f"/api/v1/runs/{run}", expect=200).json()["state"] == "succeeded", 20)
