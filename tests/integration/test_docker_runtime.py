"""worker/runtime's `docker` against a real, private daemon; images are made from this machine's own programs, and one is
pulled from a registry that this test serves. Every order is given by a process of its own (runtime_tool), so each test
is also one of re-adoption."""
import io
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
from registry import OwnRegistry  # noqa: E402

BUILD = os.path.join(ROOT, "build", os.environ.get("V", "debug"))
DOCKERD = os.path.join(ROOT, "tests", "lib", "dockerd.sh")
PROGRAMS = "sh cat cp id sleep grep env ls mkdir touch tail head true".split()

FILES = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="a private daemon needs root")


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.02)


def root_tar(mark=""):
    """A tar of a root folder with a few of this machine's programs and the libraries that they need; a mark makes it
    another one."""
    out, seen = io.BytesIO(), set()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("mark")
        info.size = len(mark)
        tar.addfile(info, io.BytesIO(mark.encode()))
        for name in ("tmp", "etc", "proc", "sys", "dev", "run"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(info)

        def add(path, at):
            if at in seen:
                return
            seen.add(at)
            info = tar.gettarinfo(os.path.realpath(path), at.lstrip("/"))
            info.type, info.uid, info.gid = tarfile.REGTYPE, 0, 0
            with open(path, "rb") as f:
                tar.addfile(info, f)
        for program in PROGRAMS:
            path = shutil.which(program, path="/usr/bin:/bin")
            add(path, "/bin/" + program)
            for library in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", path], capture_output=True, text=True).stdout):
                add(library, library)
    return out.getvalue()


@pytest.fixture(scope="module")
def daemon():
    subprocess.run(["make", "-s"] + [f"build/{os.environ.get('V', 'debug')}/{x}" for x in ("runtime_tool", "tidemill-init")],
                   cwd=ROOT, check=True)
    folder = tempfile.mkdtemp(prefix="tidemill-test-")
    os.chmod(folder, 0o755)
    try:
        address = subprocess.run([DOCKERD, "start", folder], check=True, capture_output=True, text=True, timeout=180).stdout.strip()
        env = {**os.environ, "DOCKER_HOST": address}
        subprocess.run(["docker", "import", "-", "tidemill-test:1"], input=root_tar(), env=env, check=True, capture_output=True)
        yield {"folder": folder, "socket": address[len("unix://"):], "env": env}
    finally:
        subprocess.run([DOCKERD, "stop", folder], timeout=180)
        subprocess.run(["umount", "-R", *[line.split()[1] for line in open("/proc/mounts") if folder in line]],
                       capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


class Attempt:
    count = 0

    def __init__(self, daemon, root):
        Attempt.count += 1
        self.daemon, self.root = daemon, root
        self.id = f"att_{os.getpid()}_{Attempt.count}"
        self.folder = os.path.join(root, self.id)

    def call(self, verb, *options, command=(), check=True):
        done = subprocess.run(
            [os.path.join(BUILD, "runtime_tool"), "--root", self.root, "--init", os.path.join(BUILD, "tidemill-init"),
             "--socket", self.daemon["socket"], "--attempt", self.id, "--network", "none", *options, verb, "--", *command],
            capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        answer["notes"] = done.stderr
        if check:
            assert answer["error"] == "ok", answer
        return answer

    def start(self, *command, options=(), check=True, image="tidemill-test:1"):
        return self.call("start", "--image", image, *options, command=command, check=check)

    def sh(self, script, *options):
        return self.start("sh", "-c", script, options=options)

    def wait_state(self, state):
        return wait_for(lambda: (s := self.call("poll"))["state"] == state and s)

    def output(self, stream=1):
        data, at, out = open(os.path.join(self.folder, "ctl", "spool"), "rb").read(), 0, b""
        while at < len(data):
            n, kind = struct.unpack_from("<IB", data, at)
            out += data[at + 16:at + 16 + n] if kind == stream else b""
            at += 16 + n
        return out.decode()

    def docker(self, *args, check=True):
        return subprocess.run(["docker", *args], env=self.daemon["env"], capture_output=True, text=True, check=check).stdout

    def inspect(self):
        return json.loads(self.docker("inspect", self.id))[0]


@pytest.fixture
def attempt(daemon):
    root = tempfile.mkdtemp(prefix="tidemill-test-")
    os.chmod(root, 0o755)
    made = []

    def make():
        made.append(Attempt(daemon, root))
        return made[-1]
    first = make()
    first.another = make
    yield first
    for a in made:
        a.call("remove")
        assert not os.path.exists(os.path.join(a.folder, "secrets"))
        assert a.docker("ps", "-aq", "--filter", f"name={a.id}") == ""
    shutil.rmtree(root)


def test_probe(attempt):
    about = attempt.call("probe")
    assert about["ok"] and about["version"] and about["survives_daemon"] and not about["gpus"]


def test_no_daemon_is_told(attempt):
    attempt.daemon = {**attempt.daemon, "socket": "/no/such.sock"}
    about = attempt.call("probe")
    assert not about["ok"] and "/no/such.sock" in about["note"]
    answer = attempt.start("true", check=False)
    assert answer["error"] == "network" and answer["blame"] == 3
    attempt.daemon = {**attempt.daemon, "socket": attempt.daemon["env"]["DOCKER_HOST"][len("unix://"):]}


def test_runs_to_its_end(attempt):
    answer = attempt.sh("echo out; echo err >&2; touch /tidemill/out/result; cat /tidemill/in/data; exit 7")
    assert re.fullmatch("sha256:[0-9a-f]{64}", answer["image"])
    s = attempt.wait_state("ended")
    assert (s["end"], s["code"], s["stopped"]) == ("exited", 7, False)
    assert attempt.output().startswith("out\n") and "err\n" in attempt.output(2)
    assert os.path.exists(os.path.join(attempt.folder, "out", "result"))
    assert s["spool_bytes"] == os.path.getsize(os.path.join(attempt.folder, "ctl", "spool"))
    assert attempt.call("stop", "--how", "ask", check=False)["error"] == "not_found"


def test_the_step_has_no_powers(attempt):
    attempt.sh("id -u; id -G; grep -E '^(Cap(Eff|Prm|Inh)|NoNewPrivs|Seccomp):' /proc/self/status; ls /tidemill/ctl;"
               "touch /tidemill/init; touch /run/tidemill/x; touch /tidemill/in/x; cat /proc/1/environ; kill -9 1; echo $HOME; pwd; ls -A /dev/shm")
    s = attempt.wait_state("ended")
    out, err = attempt.output(), attempt.output(2)
    assert out.split("\n")[:2] == ["65534", "65534"]
    for cap in ("CapEff", "CapPrm", "CapInh"):
        assert f"{cap}:\t{'0' * 16}" in out
    assert "NoNewPrivs:\t1" in out and "Seccomp:\t2" in out
    assert "ctl': Permission denied" in err and "'/tidemill/init': Permission denied" in err
    assert "'/run/tidemill/x': Read-only" in err and "'/tidemill/in/x': Read-only" in err
    assert "/proc/1/environ: Permission denied" in err and s["end"] == "exited"
    assert out.endswith("/tidemill/work\n/tidemill/work\n")


def test_tmp_is_bounded_and_programs_run_there(attempt):
    attempt.sh("cp /bin/true /tmp/x && /tmp/x && echo ran; grep ' /tmp ' /proc/mounts; head -c 70000000 /dev/zero > /tmp/big; ls -l /tmp/big; ulimit -n")
    attempt.wait_state("ended")
    out = attempt.output().split("\n")
    assert out[0] == "ran" and "tmpfs" in out[1] and "nosuid,nodev" in out[1] and "noexec" not in out[1]
    assert "No space left" in attempt.output(2) and int(out[-2]) == FILES


def test_settings_are_what_they_should_be(attempt):
    attempt.sh("sleep 60", "--memory", str(256 << 20), "--env", "NVIDIA_VISIBLE_DEVICES=all", "--mount", f"{ROOT}/lib:/data")
    attempt.wait_state("running")
    c = attempt.inspect()
    h = c["HostConfig"]
    assert c["Name"] == "/" + attempt.id and c["Config"]["Labels"]["tidemill.attempt"] == attempt.id
    assert h["LogConfig"]["Type"] == "none" and not h["AutoRemove"] and not h["Privileged"]
    assert h["CapDrop"] == ["ALL"] and sorted(x.removeprefix("CAP_") for x in h["CapAdd"]) == ["KILL", "SETGID", "SETUID"]
    assert h["Memory"] == h["MemorySwap"] == 256 << 20 and h["ShmSize"] == 128 << 20
    assert {(u["Name"], u["Soft"], u["Hard"]) for u in h["Ulimits"]} == {("core", 0, 0), ("nofile", FILES, FILES)}
    assert h["Tmpfs"] == {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={64 << 20}"} and h["CgroupnsMode"] == "private"
    assert h["PidsLimit"] == 4096 and h["NetworkMode"] == "none" and h["IpcMode"] == "private"
    assert h["RestartPolicy"]["Name"] in ("", "no") and not h["DeviceRequests"]
    assert [e for e in c["Config"]["Env"] if "NVIDIA" in e] == ["NVIDIA_VISIBLE_DEVICES=void"]
    writable = {m["Destination"]: m["RW"] for m in c["Mounts"]}
    assert writable == {"/data": False, "/tidemill/init": False, "/tidemill/in": False, "/run/tidemill": False,
                        "/tidemill/ctl": True, "/tidemill/work": True, "/tidemill/out": True}


def test_secrets_are_nowhere_to_be_seen(attempt):
    attempt.sh('echo "$PASSWORD"; cat /run/tidemill/token; cat /run/tidemill/env; touch set; sleep 60',
               "--secret-env", "PASSWORD=hunter2", "--secret", "token=tdm_jb_1")
    attempt.wait_state("running")
    wait_for(lambda: os.path.exists(os.path.join(attempt.folder, "work", "set")))
    attempt.call("stop", "--how", "kill")
    attempt.wait_state("ended")
    assert attempt.output() == "hunter2\ntdm_jb_1"
    assert "hunter2" not in json.dumps(attempt.inspect())
    secrets = os.path.join(attempt.folder, "secrets")
    assert sorted(os.listdir(secrets)) == ["token"], "the environment goes once the command runs"


def test_stop_asks_and_waits(attempt):
    attempt.sh("trap 'echo bye; exit 4' TERM; touch set; while :; do sleep 0.05; done")
    wait_for(lambda: os.path.exists(os.path.join(attempt.folder, "work", "set")))
    attempt.call("stop", "--how", "ask")
    s = attempt.wait_state("ended")
    assert (s["end"], s["code"], s["stopped"]) == ("exited", 4, True) and attempt.output() == "bye\n"


def test_what_ignores_is_killed_after_grace(attempt):
    attempt.sh("trap '' TERM; touch set; while :; do sleep 0.05; done", "--grace", "1")
    wait_for(lambda: os.path.exists(os.path.join(attempt.folder, "work", "set")))
    attempt.call("stop", "--how", "ask")
    s = attempt.wait_state("ended")
    assert (s["end"], s["signo"], s["stopped"]) == ("signaled", 9, True)


def test_forced_end_is_lost(attempt):
    attempt.sh("sleep 60")
    attempt.wait_state("running")
    attempt.call("stop", "--how", "force")
    s = attempt.wait_state("ended")
    assert s["end"] == "lost" and "137" in s["message"]


def test_missing_command(attempt):
    attempt.start("/no/such")
    s = attempt.wait_state("ended")
    assert (s["end"], s["message"]) == ("not_started", "cannot run /no/such: No such file or directory")


def test_out_of_memory_is_known(attempt):
    attempt.start("tail", "/dev/zero", options=["--memory", str(32 << 20)])
    s = attempt.wait_state("ended")
    assert s["end"] == "oom"


def test_found_again_and_started_once(attempt):
    attempt.sh("echo once; while [ ! -e go ]; do sleep 0.02; done; exit 9", "--epoch", "5")
    attempt.wait_state("running")
    found = attempt.call("list")["found"]
    assert found == [{"attempt": attempt.id, "step": "stp_test", "ctl": os.path.join(attempt.folder, "ctl"), "epoch": 5}]
    attempt.sh("echo twice", "--epoch", "5")
    answer = attempt.start("true", options=["--epoch", "6"], check=False)
    assert answer["error"] == "conflict"
    open(os.path.join(attempt.folder, "work", "go"), "w").close()
    s = attempt.wait_state("ended")
    assert s["code"] == 9 and attempt.output() == "once\n"


def test_other_installations_are_not_ours(attempt):
    attempt.sh("sleep 60")
    assert attempt.call("list", "--install", "ins_other")["found"] == []


def test_deadman_works_without_any_worker(attempt):
    attempt.sh("sleep 60", "--deadman", "6", "--grace", "1")
    s = attempt.wait_state("ended")
    assert s["deadman"] and (s["end"], s["signo"]) == ("signaled", 15)


def test_stop_during_start_leaves_nothing(attempt):
    answer = attempt.start("sleep", "60", options=["--stop-meanwhile"], check=False)
    assert (answer["stop"], answer["error"]) == ("ok", "cancelled")
    assert attempt.docker("ps", "-aq", "--filter", f"name={attempt.id}") == ""


def test_read_only_root(attempt):
    attempt.sh("touch /x; touch /tmp/x && echo fine", "--read-only")
    attempt.wait_state("ended")
    assert attempt.output() == "fine\n" and "Read-only" in attempt.output(2)


def test_missing_gpu_runtime_is_the_gpu(attempt):
    answer = attempt.start("true", options=["--gpu", "GPU-1234"], check=False)
    assert answer["error"] == "unavailable" and answer["blame"] == 2
    assert attempt.docker("ps", "-aq", "--filter", f"name={attempt.id}") == "", "a failed start is removed"


@pytest.mark.parametrize("image", ["", "../x", "a b", "x?y", "-x"])
def test_bad_image_names(attempt, image):
    answer = attempt.start("true", image=image, check=False)
    assert answer["error"] == "invalid" and answer["blame"] == 0


def test_image_that_cannot_be_had(attempt):
    answer = attempt.start("true", image="127.0.0.1:1/none:1", check=False)
    assert answer["error"] == "unavailable" and answer["blame"] == 1 and "pulling 127.0.0.1:1/none:1" in answer["notes"]


@pytest.fixture
def registry():
    r = OwnRegistry(root_tar())
    yield r
    r.close()


@pytest.mark.parametrize("by", ["tag", "digest"])
def test_missing_image_is_pulled_once(attempt, registry, by):
    image = registry.image + (":1" if by == "tag" else "@" + registry.digest)
    answer = attempt.start("sh", "-c", "echo pulled", image=image)
    assert f"note: pulling {image}" in answer["notes"]
    attempt.wait_state("ended")
    assert attempt.output() == "pulled\n"
    again = attempt.another()
    assert again.start("sh", "-c", "true", image=image)["notes"] == ""
    assert again.wait_state("ended")["code"] == 0


def test_daemon_killed_meanwhile(attempt):
    """The step, its log and its end do not need the daemon; nor does looking at them."""
    attempt.sh("n=0; while [ ! -e go ]; do n=$((n+1)); echo $n; done; echo end; exit 3")
    attempt.wait_state("running")
    folder = attempt.daemon["folder"]
    pid = int(open(os.path.join(folder, "dockerd.pid")).read())
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{pid}") or ") Z" in open(f"/proc/{pid}/stat").read())
    assert attempt.call("poll")["state"] == "running"
    open(os.path.join(attempt.folder, "work", "go"), "w").close()
    s = attempt.wait_state("ended")
    assert (s["end"], s["code"]) == ("exited", 3)
    lines = attempt.output().split("\n")
    assert lines[-2:] == ["end", ""] and lines[:-2] == [str(n + 1) for n in range(len(lines) - 2)]
    subprocess.run([DOCKERD, "start", folder], check=True, capture_output=True, timeout=180)
    assert [f["attempt"] for f in attempt.call("list")["found"]] == [attempt.id]
