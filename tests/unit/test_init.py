"""tidemill-init as a real process: bytes, ends, signals, orphans, users, deadman, barrier, full disks."""
import fcntl
import os
import pathlib
import random
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("B", "build/" + os.environ.get("V", "debug"))
INIT = ROOT / BUILD / "tidemill-init"
STREAMS = {1: "out", 2: "err", 3: "note"}
AS_ROOT = os.geteuid() == 0


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.005)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="session", autouse=True)
def built():
    if "B" not in os.environ:
        subprocess.run(["make", "-s", f"{BUILD}/tidemill-init"], cwd=ROOT, check=True)


class Init:
    def __init__(self, folder):
        self.ctl = folder / "ctl"
        self.ctl.mkdir(mode=0o750)
        self.process = None

    def start(self, *argv, options=(), env=None, before=None, program=INIT):
        self.process = subprocess.Popen(
            [program, "--ctl", self.ctl, *options, "--", *argv],
            env=env, preexec_fn=before, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return self

    def wait(self, seconds=30):
        return self.process.wait(seconds)

    def run(self, *argv, **kw):
        return self.start(*argv, **kw).wait()

    def status(self):
        try:
            text = (self.ctl / "status").read_text()
        except FileNotFoundError:
            return {}
        return dict(line.split("=", 1) for line in text.splitlines())

    def wait_state(self, state):
        return wait_for(lambda: self.status().get("state") == state and self.status())

    def frames(self):
        data = (self.ctl / "spool").read_bytes()
        at = 0
        while at < len(data):
            length, stream, zero, rank, when = struct.unpack_from("<IBBHQ", data, at)
            assert 1 <= length <= 65536 and stream in STREAMS and zero == 0
            payload = data[at + 16:at + 16 + length]
            assert len(payload) == length, "a torn frame"
            yield STREAMS[stream], payload, rank, when
            at += 16 + length

    def output(self, name):
        return b"".join(p for stream, p, _, _ in self.frames() if stream == name)


@pytest.fixture
def init(tmp_path):
    i = Init(tmp_path)
    yield i
    if i.process is not None:
        if i.process.poll() is None:
            i.process.send_signal(signal.SIGQUIT)
            i.process.wait(10)
        i.process.stderr.close()


def python(code):
    return [sys.executable, "-c", code]


def test_bytes_of_both_streams_are_exact(init):
    size, code = 20 << 20, """
import os, random, sys, threading
def go(fd, seed):
    r = random.Random(seed); data = r.randbytes(%d); at = 0
    while at < len(data):
        at += os.write(fd, data[at:at + r.choice((1, 100, 5000, 70000, 1 << 20))])
t = [threading.Thread(target=go, args=(fd, fd)) for fd in (1, 2)]
[x.start() for x in t]; [x.join() for x in t]
""" % (20 << 20)
    before = time.time()
    assert init.run(*python(code), options=["--rank", "7"]) == 0
    for fd, name in ((1, "out"), (2, "err")):
        assert init.output(name) == random.Random(fd).randbytes(size)
    s = init.status()
    assert s["state"] == "exited" and s["code"] == "0" and "reason" not in s
    assert int(s["stdout_bytes"]) == int(s["stderr_bytes"]) == size
    assert s["dropped_bytes"] == s["lost_bytes"] == "0"
    assert int(s["spool_bytes"]) == (init.ctl / "spool").stat().st_size
    for _, _, rank, when in init.frames():
        assert rank == 7 and before - 1 < when / 1e6 < time.time() + 1


def test_order_across_streams_is_arrival(init):
    """The command writes a piece when the one before has been read out of its pipe, whichever that was."""
    code = """
import fcntl, os, sys, termios, time
end = time.monotonic() + 30
for n in range(40):
    os.write(1 + n % 2, b"%d," % n)
    while any(fcntl.ioctl(1 + n % 2, termios.FIONREAD, bytes(4))):
        if time.monotonic() > end:
            sys.exit("the pipe is not read")
        os.sched_yield()
"""
    assert init.run(*python(code)) == 0
    order = b"".join(p for _, p, _, _ in init.frames()).decode().strip(",").split(",")
    assert [int(x) for x in order] == list(range(40))


def test_small_writes_share_frames(init):
    code = "import os\nfor n in range(20000): os.write(1, b'x')"
    assert init.run(*python(code)) == 0
    assert init.output("out") == b"x" * 20000
    assert len(list(init.frames())) < 2000


def test_output_is_on_disk_while_the_command_is_silent(init):
    init.start("sh", "-c", "echo first; exec sleep 60")
    wait_for(lambda: (init.ctl / "spool").exists() and init.output("out") == b"first\n", 2)
    assert init.wait_state("running")["pid"]


@pytest.mark.parametrize("code", [0, 1, 42, 125, 255])
def test_exit_code(init, code):
    assert init.run("sh", "-c", f"exit {code}") == code
    s = init.status()
    assert (s["state"], s["code"]) == ("exited", str(code)) and "signal" not in s
    assert int(s["started_us"]) <= int(s["ended_us"]) and int(s["max_rss_kb"]) > 0
    assert s["boot_id"] == pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert not (init.ctl / "status.tmp").exists()


def test_death_by_signal(init):
    assert init.run("sh", "-c", "kill -SEGV $$") == 128 + signal.SIGSEGV
    s = init.status()
    assert (s["state"], s["signal"]) == ("signaled", str(int(signal.SIGSEGV))) and "code" not in s


def test_cpu_time_counts_descendants(init):
    assert init.run("sh", "-c", f"{sys.executable} -c 'sum(range(10**7))'; true") == 0
    assert int(init.status()["user_us"]) > 30000


@pytest.mark.parametrize("name", ["INT", "HUP", "USR1", "USR2"])
def test_signals_reach_the_whole_group(init, name):
    code = f"""
import os, signal, time
me = os.fork()
def stop(*_):
    os.write(1, b"parent " if me else b"child ")
    if me: os.wait()
    os._exit(7)
signal.signal(signal.SIG{name}, stop)
os.write(1, b"ready ")
while True: time.sleep(1)
"""
    init.start(*python(code))
    wait_for(lambda: (init.ctl / "spool").exists() and init.output("out").count(b"ready") == 2)
    init.process.send_signal(getattr(signal, "SIG" + name))
    assert init.wait() == 7
    assert b"child" in init.output("out") and b"parent" in init.output("out")
    assert "reason" not in init.status()


def test_term_is_passed_on_and_recorded(init):
    init.start("sh", "-c", "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
    wait_for(lambda: (init.ctl / "spool").exists() and init.output("out") == b"ready\n")
    init.process.terminate()
    assert init.wait() == 3
    assert init.output("out") == b"ready\nbye\n"
    assert init.status()["reason"] == "stopped"


def test_ignored_term_ends_after_grace(init):
    init.start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done",
               options=["--grace", "1"])
    wait_for(lambda: (init.ctl / "spool").exists() and init.output("out") == b"ready\n")
    at = time.monotonic()
    init.process.terminate()
    assert init.wait() == 128 + 9
    assert time.monotonic() - at > 0.9
    s = init.status()
    assert (s["state"], s["signal"], s["reason"]) == ("signaled", "9", "stopped")


def test_quit_kills_at_once(init):
    init.start("sh", "-c", "trap '' TERM QUIT; sleep 60")
    init.wait_state("running")
    init.process.send_signal(signal.SIGQUIT)
    assert init.wait(5) == 128 + 9
    assert init.status()["reason"] == "stopped"


def test_stopped_command_gets_term(init):
    init.start("sh", "-c", "kill -STOP $$; sleep 60", options=["--grace", "30"])
    pid = int(init.wait_state("running")["pid"])
    wait_for(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
    init.process.terminate()
    assert init.wait(5) == 128 + 15


def test_orphans_that_hold_the_pipe_are_given_two_seconds(init):
    at = time.monotonic()
    assert init.run("sh", "-c", "(sleep 1; echo late; exec sleep 60) & echo $!; exit 4") == 4
    assert 1.5 < time.monotonic() - at
    first, late = init.output("out").split()
    assert late == b"late"
    assert not alive(int(first))


def test_orphans_that_left_the_group_end_too(init):
    code = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2): os.close(fd)
        time.sleep(60)
    os._exit(0)
os.wait()
"""
    token = f"orphan{random.getrandbits(60):x}"
    init.start(*python(code + f"#{token}"))
    assert init.wait() == 0
    for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert token.encode() not in p.read_bytes()
        except OSError:
            pass


def test_orphan_flood_does_not_keep_it(init):
    assert init.run("sh", "-c", "setsid yes & exit 0", options=["--max-log", "1000"]) == 0
    s = init.status()
    assert int(s["stdout_bytes"]) == 1000 + int(s["dropped_bytes"])


def test_zombies_are_reaped(init):
    code = """
import os, time
for n in range(50):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
print(os.getppid(), flush=True)
time.sleep(60)
"""
    init.start(*python(code))
    wait_for(lambda: (init.ctl / "spool").exists() and init.output("out").endswith(b"\n"))
    me = init.process.pid

    def children():
        n = 0
        for p in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                n += int(p.read_text().rsplit(")", 1)[1].split()[1]) == me
            except OSError:
                pass
        return n
    wait_for(lambda: children() == 1)


def test_command_not_found(init):
    assert init.run("/no/such/command") == 127
    s = init.status()
    assert s["state"] == "not_started" and s["errno"] == "2" and "pid" not in s
    assert s["error"] == "cannot run /no/such/command: No such file or directory"


def test_a_program_that_cannot_run_is_named_on_one_line(init, tmp_path):
    assert init.run("no-such\nprogram") == 127
    assert init.status()["error"] == "cannot run no-such?program: No such file or directory in PATH"


def test_command_not_executable(init, tmp_path):
    (tmp_path / "file").write_text("x")
    assert init.run(str(tmp_path / "file")) == 126
    assert init.status()["error"] == f"cannot run {tmp_path}/file"[:131] + ": Permission denied"


def test_workdir(init, tmp_path):
    assert init.run("pwd", options=["--workdir", str(tmp_path)]) == 0
    assert init.output("out").decode().strip() == str(tmp_path)


def test_missing_workdir(init):
    assert init.run("pwd", options=["--workdir", "/no/such"]) == 126
    assert init.status()["error"] == "workdir: No such file or directory"


@pytest.mark.parametrize("bad", [
    ["--rank", "65536"], ["--rank", "-1"], ["--grace", "1x"], ["--user", "12"], ["--user", ":"],
    ["--user", "1:4294967295"], ["--max-log", "99999999999999999999"], ["--nonsense"], ["--deadman", ""]])
def test_bad_command_line(init, bad):
    assert init.run("true", options=bad) == 125
    assert b"usage:" in init.process.stderr.read()
    assert list(init.ctl.iterdir()) == []


def test_missing_folder(tmp_path):
    done = subprocess.run([INIT, "--ctl", tmp_path / "none", "--", "true"], capture_output=True)
    assert done.returncode == 125 and b"No such file" in done.stderr


def test_secret_environment(init, tmp_path):
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "env").write_bytes(b"TOKEN=a\nb=c\0OLD=new\0EMPTY=\0")
    init.start("sh", "-c", 'printf "%s|%s|%s|%s" "$TOKEN" "$OLD" "${EMPTY-unset}" "$KEPT"; sleep 60',
               options=["--secrets", str(secrets)], env={"PATH": os.environ["PATH"], "OLD": "old", "KEPT": "k"})
    wait_for(lambda: (init.ctl / "spool").exists() and init.output("out") == b"a\nb=c|new||k")
    assert (secrets / "env").exists()
    for name in ("cmdline", "environ") if AS_ROOT else ("cmdline",):  # the environment is closed to others
        assert b"a\nb=c" not in pathlib.Path(f"/proc/{init.process.pid}/{name}").read_bytes()


def test_secret_environment_may_be_absent(init, tmp_path):
    assert init.run("true", options=["--secrets", str(tmp_path)]) == 0


@pytest.mark.parametrize("text", [b"NOVALUE\0", b"=x\0", b"A=" + b"x" * (1 << 20)],
                         ids=["no value", "no name", "too large"])
def test_bad_secret_environment(init, tmp_path, text):
    (tmp_path / "env").write_bytes(text)
    assert init.run("true", options=["--secrets", str(tmp_path)]) == 126
    assert init.status()["error"].startswith("secrets: ")


def test_environment_is_clean(init):
    assert init.run("env", env={"PATH": "/usr/bin", "A": "1"}) == 0
    assert sorted(init.output("out").split()) == [b"A=1", b"PATH=/usr/bin"]


def test_command_inherits_no_descriptor_and_no_signal_state(init):
    r, w = os.pipe()
    os.set_inheritable(w, True)
    script = "ls /proc/self/fd; grep -E 'Sig(Blk|Ign)|NoNewPrivs' /proc/self/status"
    process = subprocess.Popen([INIT, "--ctl", init.ctl, "--", "sh", "-c", script], close_fds=False)
    os.close(w)
    assert process.wait(10) == 0
    os.close(r)
    words = init.output("out").split()
    own = 3 << 31  # 32 and 33 are libc's, and nobody's to set
    assert words[:4] == [b"0", b"1", b"2", b"3"] and words[8:] == [b"NoNewPrivs:", b"1"]
    assert int(words[5], 16) == 0 and int(words[7], 16) & ~own == 0


def test_stdin_is_empty(init):
    assert init.run("cat") == 0
    assert init.output("out") == b""


def test_max_log_keeps_head_and_tail(init):
    assert init.run(*python("import os\nfor n in range(1000): os.write(1, b'%09d\\n' % n)"), options=["--max-log", "6000"]) == 0
    whole = b"".join(b"%09d\n" % n for n in range(1000))
    assert init.output("out") == whole[:4500] + whole[-1500:]
    s = init.status()
    assert s["dropped_bytes"] == "4000" and s["stdout_bytes"] == "10000"
    assert init.output("note") == b"tidemill: the limit of the log was reached; left out here: 4000 bytes\n"
    kinds = [f[0] for f in init.frames()]
    assert kinds.index("note") not in (0, len(kinds) - 1)  # it stands where the gap is


def test_the_tail_of_a_long_log_is_exact(init):
    """Longer than all buffers, both streams, pieces of many lengths."""
    code = """
import os
for n in range(20000):
    os.write(1 + n % 2, (b"%d " % n) * (n % 37))
"""
    assert init.run(*python(code), options=["--max-log", "1000000"]) == 0
    out, err = (b"".join((b"%d " % n) * (n % 37) for n in range(20000) if n % 2 == k) for k in (0, 1))
    s = init.status()
    kept = len(init.output("out")) + len(init.output("err"))
    assert kept == 1000000 and int(s["dropped_bytes"]) == len(out) + len(err) - kept
    frames = list(init.frames())
    gap = [f[0] for f in frames].index("note")
    for name, whole in (("out", out), ("err", err)):
        head = b"".join(f[1] for f in frames[:gap] if f[0] == name)
        tail = b"".join(f[1] for f in frames[gap:] if f[0] == name)
        assert len(tail) > 100000 and whole.startswith(head) and whole.endswith(tail)


def test_a_tail_of_single_bytes_by_turns_stays_bounded(init):
    code = "import os\nfor n in range(100000): os.write(1 + n % 2, b'%d' % (n % 10))"
    assert init.run(*python(code), options=["--max-log", "40000"]) == 0
    s = init.status()
    out, err = init.output("out"), init.output("err")
    assert len(out) + len(err) + int(s["dropped_bytes"]) == 100000 and len(out) + len(err) == 40000
    assert out[:9] == b"024680246" and err.endswith(b"13579")


def test_headers_of_tiny_pieces_cost_a_part_of_the_tail(init):
    code = "import os\nfor n in range(1200000): os.write(1 + n % 2, b'x')"
    assert init.run(*python(code), options=["--max-log", "1048576"]) == 0
    kept = len(init.output("out")) + len(init.output("err"))
    assert 786432 + 20000 < kept < 1048576 and kept + int(init.status()["dropped_bytes"]) == 1200000


def test_exactly_max_log_is_complete(init):
    assert init.run("printf", "123456", options=["--max-log", "6"]) == 0
    assert init.output("out") == b"123456" and init.output("note") == b""


def limited(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_failing_writes_never_stop_the_command(init):
    size = 2 << 20
    code = f"import os\nfor n in range({size} // 4096): os.write(1, b'z' * 4096)\nprint('done', flush=True)"
    assert init.run(*python(code), before=limited(100_000)) == 0
    s = init.status()
    assert s["state"] == "exited" and int(s["stdout_bytes"]) == size + 5
    kept = len(init.output("out"))
    assert 0 < kept <= 100_000 and int(s["lost_bytes"]) == size + 5 - kept
    assert int(s["spool_bytes"]) == (init.ctl / "spool").stat().st_size


def test_log_goes_on_when_the_disk_has_room_again(init, tmp_path):
    flag, written = tmp_path / "go", tmp_path / "written"
    code = f"""
import os, time
for n in range(512): os.write(1, b'z' * 4096)
open({str(written)!r}, 'w').close()
while not os.path.exists({str(flag)!r}): time.sleep(0.01)
os.write(1, b'after')
"""
    init.start(*python(code), before=limited(100_000))
    spool = init.ctl / "spool"
    wait_for(lambda: spool.exists() and spool.stat().st_size >= 65536 and written.exists())
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(init.process.pid, resource.RLIMIT_FSIZE, unlimited)
    wait_for(lambda: spool.stat().st_size > 200_000)
    flag.touch()
    assert init.wait() == 0
    out, s = init.output("out"), init.status()
    assert out.endswith(b"zafter") and len(out) + int(s["lost_bytes"]) == int(s["stdout_bytes"]) == 512 * 4096 + 5
    assert int(s["lost_bytes"]) > 0
    assert f"could not be written: {s['lost_bytes']} bytes".encode() in init.output("note")
    names = [stream for stream, _, _, _ in init.frames()]
    assert names.index("note") < len(names) - 1, "the gap is noted where it is"


@pytest.mark.skipif(not AS_ROOT, reason="mounts a small file system")
def test_full_disk_does_not_hide_the_end(tmp_path):
    (tmp_path / "small").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path / "small"], check=True)
    try:
        init = Init(tmp_path / "small")
        assert init.run(*python("import os, sys\nos.write(1, b'x' * 1000000)\nsys.exit(9)")) == 9
        s = init.status()
        assert (s["state"], s["code"]) == ("exited", "9")
        assert len(init.output("out")) + int(s["lost_bytes"]) == 1000000
        init.process.stderr.close()
    finally:
        subprocess.run(["umount", "-l", tmp_path / "small"], check=True)


def test_the_count_of_output_survives_the_loss_of_its_page(init):
    """As on a disk without room for a copy of it: the file is cut, and the next store faults."""
    script = "echo one; while [ ! -e cut ]; do sleep 0.02; done; echo two >&2; echo three; while [ ! -e end ]; do sleep 0.02; done"
    init.start("sh", "-c", script, options=["--workdir", init.ctl])
    taken = init.ctl / "taken"
    wait_for(lambda: taken.exists() and taken.read_bytes()[:16] == struct.pack("<QQ", 4, 0))
    os.truncate(taken, 0)
    (init.ctl / "cut").touch()
    wait_for(lambda: not taken.exists())  # it would be believed if the init were killed now
    (init.ctl / "end").touch()
    assert init.wait() == 0
    assert (init.status()["stdout_bytes"], init.status()["stderr_bytes"]) == ("10", "4")


def test_deadman_ends_a_silent_attempt(init):
    (init.ctl / "alive").touch()
    init.start("sh", "-c", "trap 'echo bye; exit 5' TERM; while :; do sleep 0.05; done",
               options=["--deadman", "1"])
    init.wait_state("running")
    for _ in range(10):
        (init.ctl / "alive").touch()
        time.sleep(0.2)
        assert init.process.poll() is None
    at = time.monotonic()
    assert init.wait() == 5
    assert time.monotonic() - at > 0.5
    assert init.status()["reason"] == "deadman" and init.output("out") == b"bye\n"


def renew(init, ago):
    """As the worker does: the moment is one of the elapsed clock."""
    at = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - int(ago * 1e9)
    (init.ctl / "alive").touch()
    os.utime(init.ctl / "alive", ns=(at, at))


def test_deadman_counts_from_the_moment_that_the_worker_writes(init):
    renew(init, 0)
    at = time.monotonic()
    init.start("sh", "-c", "sleep 60", options=["--deadman", "4"])
    init.wait_state("running")
    renew(init, -0.001)
    renew(init, 2.5)
    assert init.wait() == 128 + 15
    assert 1.0 < time.monotonic() - at < 3.0
    assert init.status()["reason"] == "deadman"


def test_deadman_that_is_over_starts_nothing(init):
    renew(init, 1.5)
    assert init.run("echo", "never", options=["--deadman", "1"]) == 143
    assert (init.status()["state"], init.status()["reason"]) == ("not_started", "deadman")
    assert init.output("out") == b""


def test_deadman_kills_what_ignores_term(init):
    at = time.monotonic()
    assert init.run("sh", "-c", "trap '' TERM; while :; do sleep 0.05; done",
                    options=["--deadman", "1", "--grace", "1"]) == 128 + 9
    assert time.monotonic() - at > 1.9
    assert init.status()["reason"] == "deadman"


@pytest.mark.parametrize("shift", [-86400, 86400])
def test_deadman_does_not_trust_the_wall_clock(init, shift):
    """A touch is a touch, whatever time of the file system's clock it carries."""
    (init.ctl / "alive").touch()
    init.start("sh", "-c", "sleep 60", options=["--deadman", "1"])
    init.wait_state("running")
    for n in range(12):
        t = time.time() + shift + n
        os.utime(init.ctl / "alive", (t, t))
        time.sleep(0.1)
    assert init.process.poll() is None
    assert init.wait(5) == 128 + 15
    assert init.status()["reason"] == "deadman"


def test_barrier_holds_until_go(init):
    init.start("echo", "gone", options=["--barrier"])
    s = init.wait_state("waiting")
    assert "pid" not in s and int(s["init_pid"]) == init.process.pid
    assert init.process.poll() is None and init.output("out") == b""
    (init.ctl / "go").touch()
    assert init.wait() == 0
    assert init.output("out") == b"gone\n"


def test_barrier_can_be_left(init):
    init.start("echo", "never", options=["--barrier"])
    init.wait_state("waiting")
    init.process.terminate()
    assert init.wait() == 143
    s = init.status()
    assert (s["state"], s["reason"]) == ("not_started", "stopped") and init.output("out") == b""


def test_barrier_has_the_deadman(init):
    assert init.run("echo", "never", options=["--barrier", "--deadman", "1"]) == 143
    assert (init.status()["state"], init.status()["reason"]) == ("not_started", "deadman")


@pytest.mark.skipif(not AS_ROOT, reason="only root can become somebody else")
def test_user_is_dropped_whole(init):
    os.chmod(init.ctl, 0o700)
    script = "id -u; id -g; id -G; grep -E '^Cap(Eff|Prm)' /proc/self/status; cat %s/lock" % init.ctl
    assert init.run("sh", "-c", script, options=["--user", "65534:65533"],
                    before=lambda: os.setgroups([0, 4, 27])) == 1
    assert init.output("out").split() == [
        b"65534", b"65533", b"65533", b"CapPrm:", b"0" * 16, b"CapEff:", b"0" * 16]
    assert b"Permission denied" in init.output("err")


@pytest.mark.skipif(not AS_ROOT, reason="starts as somebody else")
def test_user_that_cannot_be_taken(init):
    os.chown(init.ctl, 65534, 65534)
    for p in init.ctl.parents:
        if p.stat().st_uid == 0 and str(p).startswith("/tmp/"):
            os.chmod(p, 0o755)
    # Where that user can reach it: the tree may stand in a folder that is closed, such as root's own.
    program = init.ctl.parent / "init"
    shutil.copy(INIT, program)

    def drop():
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    assert init.run("true", options=["--user", "1:1"], before=drop, program=program) == 126
    assert init.status()["error"] == "user: Operation not permitted"


@pytest.mark.skipif(not AS_ROOT, reason="gives a folder to a group")
def test_files_belong_to_the_group_of_the_folder(init):
    os.chown(init.ctl, -1, 4)
    assert init.run("echo", "x") == 0
    for name in ("spool", "status", "lock"):
        st = (init.ctl / name).stat()
        assert st.st_gid == 4 and stat.S_IMODE(st.st_mode) == 0o640


def test_it_outlives_who_started_it(init):
    code = f"""
import os, subprocess, time
subprocess.Popen([{str(INIT)!r}, "--ctl", {str(init.ctl)!r}, "--", "sh", "-c",
                  "echo a; while [ ! -e {init.ctl}/on ]; do sleep 0.02; done; echo b; exit 6"])
time.sleep(60)
"""
    parent = subprocess.Popen(python(code), start_new_session=True)
    s = init.wait_state("running")
    os.killpg(parent.pid, signal.SIGKILL)
    parent.wait()
    assert alive(int(s["init_pid"])) and alive(int(s["pid"]))
    (init.ctl / "on").touch()
    s = init.wait_state("exited")
    assert s["code"] == "6" and init.output("out") == b"a\nb\n"
    wait_for(lambda: not alive(int(s["init_pid"])))


def test_it_can_be_found_again_by_lock_and_start(init):
    init.start("sleep", "60")
    s = init.wait_state("running")
    for pid, start in (("init_pid", "init_start"), ("pid", "pid_start")):
        fields = pathlib.Path(f"/proc/{s[pid]}/stat").read_text().rsplit(")", 1)[1].split()
        assert fields[19] == s[start]
    def held():
        with open(init.ctl / "lock") as f:
            ask = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            return struct.unpack_from("h", fcntl.fcntl(f, fcntl.F_OFD_GETLK, ask))[0] != fcntl.F_UNLCK
    assert held()
    init.process.send_signal(signal.SIGQUIT)
    init.wait()
    assert not held()


def test_second_start_is_refused(init):
    init.start("sleep", "60")
    init.wait_state("running")
    again = subprocess.run([INIT, "--ctl", init.ctl, "--", "true"], capture_output=True)
    assert again.returncode == 125 and b"lock" in again.stderr
    init.process.send_signal(signal.SIGQUIT)
    init.wait()
    before = init.status()
    again = subprocess.run([INIT, "--ctl", init.ctl, "--", "true"], capture_output=True)
    assert again.returncode == 125 and b"spool: File exists" in again.stderr
    assert init.status() == before


def test_command_does_not_outlive_a_killed_init(init):
    options = ["--user", "65534:65534"] if AS_ROOT else []
    init.start("sleep", "60", options=options)
    pid = int(init.wait_state("running")["pid"])
    init.process.kill()
    init.wait()
    wait_for(lambda: not alive(pid))


@pytest.mark.skipif(not AS_ROOT, reason="makes a PID namespace")
def test_as_pid_one(init):
    script = "setsid sleep 60 & sh -c 'setsid sleep 61 &' ; echo $$ $PPID; exit 8"
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", INIT, "--ctl", init.ctl, "--",
                           "sh", "-c", script])
    assert done.returncode == 8
    assert init.output("out").split()[1] == b"1"
    s = init.status()
    assert s["state"] == "exited" and s["init_pid"] == "1"


def usage(init):
    try:
        text = (init.ctl / "usage").read_text()
    except FileNotFoundError:
        return {}
    return dict(line.split("=", 1) for line in text.splitlines())


def test_usage_of_all_descendants(init):
    """Also of one that has left the process group, and whose parent has gone; what has ended still counts."""
    code = ("b = bytearray(60 << 20)\nimport time\nwhile time.process_time() < 0.4: pass\n"
            "open('on', 'w').close()\ntime.sleep(60)")
    script = f"(setsid {sys.executable} -c \"$CODE\" &); {sys.executable} -c 'sum(range(10**7))'; exec sleep 60"
    init.start("sh", "-c", script, options=["--usage", "1", "--workdir", init.ctl], env={**os.environ, "CODE": code})
    wait_for((init.ctl / "on").exists)
    mark = time.time_ns() // 1000
    now = wait_for(lambda: (u := usage(init)) and int(u["at_us"]) > mark and u)
    assert now["scope"] == "processes" and int(now["cpu_us"]) > 400_000 and int(now["memory"]) > 60 << 20
    init.process.send_signal(signal.SIGQUIT)
    init.wait()
    last = usage(init)
    assert int(last["cpu_us"]) >= int(now["cpu_us"]) - 20_000 and "memory" not in last
    assert not (init.ctl / "usage.tmp").exists()


@pytest.mark.parametrize("step", [-3600, 3600], ids=["back", "forward"])
def test_usage_counts_what_has_elapsed(init, tmp_path, step):
    """Whatever is done to the calendar meanwhile. The fake reaches no static program, so this one is linked for it."""
    program, offset = tmp_path / "dynamic-init", tmp_path / "offset"
    fake = f"{BUILD}/libfake_clock.so"
    subprocess.run(["make", "-s", fake], cwd=ROOT, check=True)
    subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-I.", "-o", program, *ROOT.glob("worker/init/*.c")],
                   cwd=ROOT, check=True)
    offset.write_bytes(struct.pack("<q", 0))
    init.start("sleep", "60", options=["--usage", "1"], program=program,
               env={**os.environ, "LD_PRELOAD": str(ROOT / fake), "FAKE_CLOCK": str(offset)})
    first = wait_for(lambda: usage(init).get("at_us"))
    with open(offset, "r+b") as f:
        f.write(struct.pack("<q", step * 1_000_000))
    later = wait_for(lambda: (now := usage(init).get("at_us")) != first and now)
    assert 0 < int(later) - int(first) < 60_000_000
    init.process.send_signal(signal.SIGTERM)
    init.wait()
    assert int(later) <= int(usage(init)["at_us"]) < int(first) + 60_000_000


@pytest.mark.skipif(not AS_ROOT, reason="mounts a /proc of its own")
def test_usage_on_a_host_with_many_processes(init, tmp_path):
    """Ours are found, be they the first or the last."""
    fill = """
import os, sys
def put(pid, parent, ticks):
    os.mkdir(f"/proc/{pid}")
    with open(f"/proc/{pid}/stat", "w") as f:
        f.write(f"{pid} (a b) S {parent} " + "0 " * 9 + f"{ticks} 0 0 0 " + "0 " * 6 + "0 1 0")
put(100, 1, 100)
for n in range(12000):
    put(1000 + n, 999, 100000)
put(20000, 100, 200)
os.execv(sys.argv[1], sys.argv[1:])
"""
    options = ["--ctl", init.ctl, "--usage", "1", "--", "sleep", "60"]
    script = 'mount -t tmpfs tmpfs /sys/fs/cgroup && mount -t tmpfs tmpfs /proc && exec "$@"'
    init.process = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", sys.executable, "-c", fill,
                                     INIT, *options], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    now = wait_for(lambda: usage(init), 60)
    assert now["scope"] == "processes" and 3_000_000 <= int(now["cpu_us"]) < 4_000_000


def test_no_usage_unless_asked(init):
    init.start("true").wait()
    assert not (init.ctl / "usage").exists()
