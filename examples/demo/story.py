#!/usr/bin/env python3
"""The demo's story: a model is trained on real data, wears out as the years pass, and is retrained when its monitor says so.

Expects a server that the command line is logged in to, an empty project, and a worker. Prints what happens and leaves
summary.json in the state's folder.
"""
import argparse
import os
import shutil
import subprocess
from pathlib import Path

import history
import summary
import tide
from outside import CHICAGO, Outside
from tide import get, say

FIRST = history.Quarter(2004, 1)


def git(repo, *args):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    who = ["-c", "user.name=Demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(repo), *who, *args], env=env, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def make_repository(folder):
    """A git repository of the example's folder; returns the commit."""
    shutil.copytree(CHICAGO, folder, ignore=shutil.ignore_patterns("__pycache__", "chicago.csv.gz"))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Ridership: train, evaluate, score")
    return git(folder, "rev-parse", "HEAD")


def begin(data, parts, repo):
    """Data set, repository, first run, monitor. Returns the first model version."""
    base = parts / "2001-2003.csv"
    rows = data.write(base, lambda day: history.of_day(day) < FIRST)
    version = get("dataset", "push", "ridership", base, "--description", "Daily ridership, 2001 to 2003")
    say(f"Data set ridership, version {version['number']}: {rows} days, 48 features")

    commit = make_repository(repo)
    say(f"Pipelines from {repo} at {commit[:12]}")
    tide.call("apply", "-f", repo / "tidemill.yaml", "--repository", repo, show=True)
    say("The first training, with its log:")
    tide.call("run", "submit", "ridership", "--ref", commit, "--follow", "--fail-on-refused", show=True)
    tide.call("apply", "-f", repo / "monitor.yaml", show=True)
    tide.call("apply", "-f", repo / "score.yaml", "--repository", repo, show=True)
    return get("model", "version", "ridership", 1)


def wait_for_run(run):
    """Waits for its end in silence; one that ends badly is explained."""
    def state():
        return get("api", "GET", f"/api/v1/runs/{run}?wait=30s")["state"]

    tide.wait_until(lambda: state() in ("succeeded", "failed", "cancelled"), f"{run} does not end", seconds=900)
    if state() != "succeeded":
        tide.call("run", "wait", run, show=True)


def scored(number):
    """The run that the data set's version has started, once it has ended well."""
    def find():
        runs = get("run", "list", "--pipeline", "ridership-score", "--limit", 20)
        return next((r for r in runs if any(d["number"] == number for d in r["datasets"])), None)

    wait_for_run(tide.wait_until(find, f"version {number} of the data set has started no scoring run")["id"])


def window_of(quarter, rows):
    """The quarter's window, once all rows are in it."""
    start = history.first_day(quarter)

    def find():
        windows = get("monitor", "windows", "ridership", "--limit", 10)
        return next((w for w in windows if w["start"][:10] == start and w["rows"] >= rows), None)

    return tide.wait_until(find, f"the window of {history.name(quarter)} did not get its {rows} rows")


def close(window):
    """Closes the window; returns it with the decisions on it."""
    if window["state"] != "closed":
        tide.call("monitor", "close", "ridership", "--start", window["start"], "-q")
    found = get("monitor", "windows", "ridership", "--limit", 10)
    window = next(w for w in found if w["id"] == window["id"])
    decisions = get("monitor", "decisions", "ridership", "--limit", 20)
    return window, [d for d in decisions if d["window_id"] == window["id"]]


def number(value):
    return "-" if value is None else f"{value:.2f}"


def line_of(quarter, window, decisions):
    error, level = window["performance"], window["level"]
    ratio = None if error is None or not level else error / level
    said = [f"{d['cause']}: {d['action']}{'' if d['fired'] else ' (not taken)'}" for d in decisions
            if d["action"] != "record"]
    return (f"{history.name(quarter)}  {window['rows']:>4}  {number(error):>6}  {number(ratio):>6}  "
            f"{number(window['drift_share']):>7}  {window.get('model_version', ''):<12}  {'; '.join(said)}")


def retrain(decision):
    """Waits for the retraining that a decision has started; returns the decision as it is then."""
    say(f"        {decision['reason']}")
    say(f"        Retraining: run {decision['run_id']}")
    wait_for_run(decision["run_id"])
    decision = get("drift", "explain", decision["id"])
    number = decision.get("model_version", "").rpartition("/")[2]
    if number:
        version = get("model", "version", "ridership", number)
        say(f"        Model {decision['model_version']}: {version['verdict']}. {version['verdict_reason']}")
    return decision


def pass_quarter(data, parts, quarter):
    """New data come, are scored, and the quarter's window is judged."""
    part = parts / f"{history.name(quarter)}.csv"
    rows = data.write(part, lambda day: history.of_day(day) == quarter)
    version = get("dataset", "push", "ridership", part, "--append", "--label", f"quarter={history.name(quarter)}")
    scored(version["number"])
    window, decisions = close(window_of(quarter, rows))
    say(line_of(quarter, window, decisions))
    return window, [retrain(d) if d["fired"] and d.get("run_id") else d for d in decisions]


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--state", type=Path, required=True, help="folder of repository, parts and summary.json")
    p.add_argument("--until", type=history.parse, default="2011Q4", help="last quarter, e.g. 2011Q4")
    return p.parse_args()


def main():
    args = arguments()
    parts = args.state / "parts"
    parts.mkdir()
    data = history.History(CHICAGO / "chicago.csv.gz")
    begin(data, parts, args.state / "repo")

    say("\nA quarter after the other: rows, error, its ratio to the champion's level, share of drifted features")
    say("window  rows   error   ratio  drifted  model         decisions")
    told = []
    for quarter in data.quarters(FIRST, args.until):
        told.append((quarter, *pass_quarter(data, parts, quarter)))
    summary.tell(args.state / "summary.json", told, Outside(args.state))


if __name__ == "__main__":
    tide.main(main)
