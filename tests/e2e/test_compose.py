"""docker-compose.yml: what stands in it, and the whole of it brought up, used and taken down."""
import json
import os
import re
import shutil
import subprocess

import pytest
import yaml

import compose
import stack
from compose import BASE, PROJECT, SERVICES
from harness import ROOT, program, until

FILE = ROOT / "docker-compose.yml"


# ---- the file -----------------------------------------------------------------------------------
class Strict(yaml.SafeLoader):
    """Refuses a key that is there twice, as Compose v2 does."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        assert len(keys) == len(set(keys)), f"line {node.start_mark.line + 1}: a key is there twice"
        return super().construct_mapping(node, deep)


Strict.add_constructor("tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node, True))


@pytest.fixture(scope="module")
def source():
    return yaml.load(FILE.read_text(), Strict)


def is_text(value):
    return isinstance(value, str) and value != ""


def is_span(value):
    return is_text(value) and re.fullmatch(r"(\d+(us|ms|s|m|h))+", value) is not None


def is_texts(value):
    return isinstance(value, list) and value != [] and all(map(is_text, value)) and len(set(value)) == len(value)


def is_text_map(value):
    """1.29 refuses booleans, and both would read numbers differently: only text is the same to all."""
    return isinstance(value, dict) and all(is_text(k) and isinstance(v, str) for k, v in value.items())


def has(**wanted):
    return lambda value: isinstance(value, dict) and value.keys() <= wanted.keys() and all(wanted[k](v) for k, v in value.items())


def one_of(*values):
    return lambda value: value in values


def is_dependency(value):
    condition = has(condition=one_of("service_started", "service_healthy", "service_completed_successfully"))
    return isinstance(value, dict) and all(map(condition, value.values()))


# Keys of a service that docker-compose 1.29 and Compose v2 take alike, with the values that they take alike. Another key may
# be added once both are known to take it: `version`, `container_name` with scale, short `depends_on` with health, … differ.
SERVICE = {
    "image": is_text,
    "build": has(context=is_text, dockerfile=is_text, network=is_text, args=is_text_map),
    "cap_add": is_texts, "cap_drop": is_texts, "security_opt": is_texts, "tmpfs": is_texts, "volumes": is_texts, "ports": is_texts,
    "read_only": one_of(True, False),
    "restart": one_of("no", "always", "on-failure", "unless-stopped"),
    "stop_grace_period": is_span,
    "logging": has(driver=is_text, options=is_text_map),
    "network_mode": is_text, "hostname": is_text, "shm_size": is_text,
    "depends_on": is_dependency,
    "environment": is_text_map,
    "healthcheck": has(test=is_texts, interval=is_span, timeout=is_span, retries=lambda v: type(v) is int),
}


def test_compose_1_reads_the_file():
    if shutil.which("docker-compose") is None:
        pytest.skip("docker-compose is missing")
    done = subprocess.run(["docker-compose", "-f", str(FILE), "config", "-q"], cwd=ROOT, capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_nothing_that_compose_2_refuses(source):
    top = {k for k in source if not k.startswith("x-")}
    assert top == {"services", "networks", "volumes"}, "a `version` is obsolete, another key is unknown to one of them"
    assert tuple(source["services"]) == SERVICES
    for name, service in source["services"].items():
        for key, value in service.items():
            assert key in SERVICE and SERVICE[key](value), f"{name}: {key}: {value!r}"
        assert not ("network_mode" in service and "networks" in service)
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] != "service_healthy" or "healthcheck" in source["services"][other]
        assert service.get("healthcheck", {"test": ["CMD"]})["test"][0] in ("CMD", "CMD-SHELL")
    assert all(has(name=is_text)(n) for n in source["networks"].values())
    assert all(v == {} for v in source["volumes"].values())


def test_volumes_are_declared_and_used(source):
    used = {v.split(":")[0] for s in source["services"].values() for v in s.get("volumes", []) if re.match(r"[a-z]", v)}
    assert used == set(source["volumes"])


def test_variables_have_defaults_and_are_described():
    text = FILE.read_text()
    head, body = text.split("\nx-", 1)
    dollars = re.findall(r"\$(\$|\{([A-Z_]+):-([^}$]+)\}|.?)", body)
    assert all(name or whole == "$" for whole, name, _ in dollars), "both read ${NAME:-default} alike, and $$"
    defaults = {}
    for _, name, default in dollars:
        assert not name or defaults.setdefault(name, default) == default, f"{name} has two defaults"
    described = dict(re.findall(r"^#   ([A-Z_]+) +(.+)$", head, re.M))
    assert set(described) == set(filter(None, defaults))
    for name, default in defaults.items():
        assert not name or f"({default}" in described[name], f"{name}: the default is {default}"


def settings_of(name):
    """Names in the environment that a program reads, by its own table."""
    text = subprocess.run([str(program(name)), "--settings"], capture_output=True, text=True, check=True, timeout=30).stdout
    rows = re.findall(r"^\| `[a-z0-9-]+` \| `(TIDEMILL_[A-Z0-9_]+)`( or `…_FILE`)?", text, re.M)
    assert len(rows) > 10, text
    return {name for name, _ in rows} | {name + "_FILE" for name, secret in rows if secret}


@pytest.mark.parametrize("service", ["server", "worker"])
def test_settings_exist(source, service):
    given = set(source["services"][service]["environment"])
    read = settings_of(f"tidemill-{service}")
    dockerfile = (ROOT / f"docker/{service}.Dockerfile").read_text()
    given |= set(re.findall(r"\b(TIDEMILL_[A-Z_]+)=", dockerfile))
    entry = ROOT / f"docker/{service}-entrypoint.sh"
    read |= set(re.findall(r"\$\{?([A-Z_]+)", entry.read_text())) if entry.exists() else set()
    assert given <= read, given - read


# ---- the installation ---------------------------------------------------------------------------
@pytest.fixture(scope="module")
def installed(request):
    if os.getuid() != 0:
        pytest.skip("a private Docker daemon needs root")
    for name in ("dockerd", "docker", "docker-compose", "debootstrap"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is missing")
    try:
        with compose.Composed() as c:
            c.up()
            yield c
            if request.session.testsfailed:
                print(c.compose("logs", "--no-color", "--tail", "80", check=False))
            c.down("-v")
    except compose.Unavailable as e:
        pytest.skip(f"no Docker daemon can be started: {e}")


@pytest.fixture(scope="module")
def api(installed):
    api = installed.api()
    api.post("/api/v1/projects", {"name": "demo"}, expect=201)
    return api


def test_the_dashboard_is_served_under_its_policy(installed):
    page = installed.client().get("/", expect=200)
    policy = dict(rule.strip().split(" ", 1) for rule in page.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'" and not re.search("unsafe|https?:|[*]", page.headers["Content-Security-Policy"])
    scripts = re.findall(r'<script[^>]* src="([^"]+)"', page.body.decode())
    assert scripts and b"<script>" not in page.body
    for script in scripts:
        reply = installed.client().get(script, expect=200)
        assert reply.headers["Content-Type"].startswith("text/javascript") and len(reply.body) > 10000


def test_a_browser_can_log_in(installed, api):
    reply = installed.client().post("/api/v1/auth/session", {"token": api.token}, expect=201)
    cookie = reply.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    seen = installed.client().get("/api/v1/projects", headers={"Cookie": cookie.split(";")[0]}, expect=200).json()["items"]
    assert [p["name"] for p in seen] == ["demo"]
    installed.client().get("/api/v1/projects", expect=401)


# Speaks to the server by the address that a step is given, leaves a result and what only its owner may remove, and waits
# until it has been looked at.
STEP = r"""
echo "a step as $(id -u)"
address=${TIDEMILL_API_URL#http://}; address=${address%%/*}
exec 3<> "/dev/tcp/${address%:*}/${address##*:}"
printf 'GET /livez HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$address" >&3
head -n 1 <&3
echo "made by the step" > "$TIDEMILL_OUTPUT/result"
mkdir -m 1777 sticky && touch sticky/file && mkdir -m 000 shut
for i in $(seq 500); do echo "line $i"; done
until [ -e "$TIDEMILL_OUTPUT/go" ]; do sleep 0.05; done
echo "the last line" >&2
"""


def submit(api, script):
    step = {"run": ["bash", "-c", script.replace("${", "$${")], "outputs": {"result": {"path": "result"}}}
    return stack.submit(api, "demo", stack.pipeline("p", {"s": step}, defaults={"runtimes": ["docker"], "image": BASE}))


def the_step(api, run):
    [step] = stack.steps_of(api, run["id"])
    return step


def wait_for_line(api, run, line):
    step = the_step(api, run)
    until(lambda: line in stack.raw_log(api, step["id"]).split(b"\n"), 90, 0.1,
          lambda: f"{the_step(api, run)}\n{stack.raw_log(api, step['id'])[-2000:]}")
    [attempt] = stack.attempts_of(api, step["id"])
    return step, attempt


def secrets_of(installed, attempt):
    """Every secret of the installation while a step runs, by name."""
    inside = {"the server's key": ("server", "/var/lib/tidemill/secret.key"), "the join token": ("server", "/run/tidemill/join-token")}
    found = {"the administrator's token": installed.token,
             "the worker's credential": json.loads((installed.work / "credential.json").read_text())["token"]}
    for name, (service, path) in inside.items():
        found[name] = installed.inside(service, "od", "-An", "-v", "-tx1", path).replace(" ", "").replace("\n", "")
        if "token" in name:
            found[name] = bytes.fromhex(found[name]).decode().strip()
    for path in (installed.secrets / attempt).iterdir():
        for token in re.findall(r"tdm_[A-Za-z0-9_]{40,}", path.read_text()):
            found["the step's token"] = token
    assert len(found) == 5 and all(len(value) >= 40 for value in found.values()), list(found)
    return found


def test_a_step_in_a_container(installed, api):
    assert installed.worker()["name"] == "worker" and installed.worker()["runtimes"] == ["docker"]
    run = submit(api, STEP)
    step, attempt = wait_for_line(api, run, b"line 500")

    # The workspace stands at the same path on the host: its container mounts it from there.
    here = installed.work / "attempts" / attempt["id"]
    assert (here / "out" / "result").read_text() == "made by the step\n"
    container = json.loads(installed.docker("inspect", attempt["id"]))[0]
    mounts = {m["Destination"]: m["Source"] for m in container["Mounts"]}
    assert mounts["/tidemill/out"] == str(here / "out")
    assert all(m.startswith((f"{installed.work}/", f"{installed.secrets}/")) for m in mounts.values())
    assert list(container["NetworkSettings"]["Networks"]) == [PROJECT]
    host = container["HostConfig"]
    assert not host["Privileged"] and host["CapDrop"] == ["ALL"] and host["SecurityOpt"] == ["no-new-privileges"]

    told = json.dumps([container] + [installed.inspect(s) for s in SERVICES])
    told += installed.docker("image", "inspect", *(f"tidemill/{i}:test" for i in ("server", "worker", "postgres")))
    told += installed.compose("logs", "--no-color")
    assert attempt["id"] in told
    for name, value in secrets_of(installed, attempt["id"]).items():
        assert value not in told, name

    (here / "out" / "go").touch()
    assert stack.wait_for_run(api, run["id"])["state"] == "succeeded"
    lines = stack.raw_log(api, step["id"], "stdout").decode().split("\n")
    assert lines == ["a step as 65534", "HTTP/1.1 200 OK\r"] + [f"line {i}" for i in range(1, 501)] + [""]
    assert stack.raw_log(api, step["id"], "stderr") == b"the last line\n"
    assert api.get(f"/api/v1/steps/{step['id']}/outputs/result/result", expect=200).body == b"made by the step\n"
    until(lambda: not here.exists() and installed.docker("ps", "-aq", "--filter", f"name={attempt['id']}") == "", 30)


def test_a_step_is_cancelled(installed, api):
    run = submit(api, "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    step, _ = wait_for_line(api, run, b"up")
    api.post(f"/api/v1/runs/{run['id']}/cancel", expect=(200, 202))
    assert stack.wait_for_run(api, run["id"])["state"] == "cancelled"
    assert stack.raw_log(api, step["id"], "stdout") == b"up\nasked\n"


def status(installed, service):
    """Fields of the main process, from inside the container."""
    text = installed.inside(service, "cat", "/proc/1/status")
    return {key: value.strip() for key, value in (line.split(":", 1) for line in text.strip().splitlines())}


def test_each_has_what_it_needs_and_no_more(installed):
    socket = installed.env["DOCKER_SOCKET"]
    uids = {"db": "postgres", "server": "10001:10001", "worker": ""}
    powers = {"db": [], "server": [], "worker": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]}
    ports = {"db": None, "server": [{"HostIp": "127.0.0.1", "HostPort": str(installed.port)}], "worker": None}
    numbers = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3}
    for service in SERVICES:
        c = installed.inspect(service)
        host = c["HostConfig"]
        assert not host["Privileged"] and host["CapDrop"] == ["ALL"], service
        assert [p.removeprefix("CAP_") for p in host["CapAdd"] or []] == powers[service], service
        assert host["SecurityOpt"] == ["no-new-privileges:true"] and host["ReadonlyRootfs"] and not host["Devices"], service
        assert (host["PidMode"], host["UsernsMode"], host["UTSMode"]) == ("", "", "") and host["IpcMode"] == "private", service
        assert host["NetworkMode"] == ("none" if service == "db" else PROJECT)
        assert c["Config"]["User"] == uids[service], service
        published = [p for p in (c["NetworkSettings"]["Ports"] or {}).values() if p]
        assert published == ([ports[service]] if ports[service] else []), service
        assert (socket in [m["Source"] for m in c["Mounts"]]) == (service == "worker"), service
        now = status(installed, service)
        assert now["NoNewPrivs"] == "1" and now["Seccomp"] == "2", service
        assert int(now["CapEff"], 16) == sum(1 << numbers[p] for p in powers[service] if now["Uid"].split()[0] == "0"), service
        assert int(now["CapBnd"], 16) == sum(1 << numbers[p] for p in powers[service]), service
        assert (now["Uid"].split()[0] == "0") == (service == "worker"), service
    folders = [m for m in installed.inspect("worker")["Mounts"] if m["Type"] == "bind" and m["Source"] != socket]
    assert all(m["Source"] == m["Destination"] for m in folders)
    assert sorted(m["Source"] for m in folders) == sorted([str(installed.work), str(installed.secrets)])


def test_the_database_takes_no_one_but_the_server(installed):
    url = "postgresql:///tidemill?host=/run/postgresql&user=tidemill"
    listening = installed.inside("db", "cat", "/proc/net/tcp", "/proc/net/tcp6").strip().splitlines()
    assert all("local_address" in line for line in listening), listening
    refused = subprocess.run(["docker", "exec", installed.container("db"), "psql", "-Atc", "SELECT 1", url], env=installed.env,
                             capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0 and "Peer authentication failed" in refused.stderr


def test_what_was_there_is_there_after_it_was_taken_down(installed, api):
    before = installed.worker()
    installed.down()
    left = installed.labelled()
    assert left["containers"] == [] == left["networks"] and len(left["volumes"]) == 4
    installed.up()
    assert installed.worker()["id"] == before["id"]
    runs = api.get("/api/v1/projects/demo/runs", expect=200).json()["items"]
    assert sorted(r["state"] for r in runs) == ["cancelled", "succeeded"]


def test_nothing_is_left_and_a_new_beginning_is_one(installed, api):
    installed.down("-v")
    assert installed.labelled() == {"containers": [], "networks": [], "volumes": []}
    assert installed.docker("ps", "-aq") == "", "nor a container of a step"
    with pytest.raises(ConnectionRefusedError):
        installed.client().get("/livez")
    # The worker's folder on the host is older than the server now. It comes in all the same.
    old = json.loads((installed.work / "credential.json").read_text())
    installed.token = None
    installed.up()
    assert installed.worker()["id"] != old["worker_id"]
    installed.client(api.token).get("/api/v1/projects", expect=401)
