"""The command line, and its JSON."""
import json
import os
import subprocess
import sys
import time


class Refused(Exception):
    """The command line has ended with an error; it has said on stderr what it was."""


def call(*args, show=False):
    """Runs `tidemill ARGS`; returns what it prints. With show, its output goes to ours."""
    command = [os.environ["TIDEMILL"], *map(str, args)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=None if show else subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Refused(f"'tidemill {' '.join(command[1:])}' ended with exit code {done.returncode}")
    return done.stdout


def get(*args):
    """An object, or the items of a list."""
    out = json.loads(call(*args, "-q", "-o", "json"))
    return out["items"] if isinstance(out, dict) and set(out) <= {"items", "next_cursor"} else out


def wait_until(what, message, seconds=120):
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            raise Refused(message)
        time.sleep(0.1)


def say(text):
    print(text, flush=True)


def main(fn):
    try:
        fn()
    except Refused as e:
        print(f"demo: {e}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
