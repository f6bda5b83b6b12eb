"""Ranks in containers, with the real server: two workers of one Docker daemon, whose containers reach each other by the host's
network. Each container is looked at while it runs: nothing but its network is different from that of other steps."""
import io
import json
import os
import re
import subprocess
import sys
import tarfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stack  # noqa: E402
from harness import until  # noqa: E402
from test_docker_runtime import daemon, root_tar  # noqa: E402,F401

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="a private daemon needs root"), pytest.mark.usefixtures("project")]
IMAGE = "tidemill-test:perl"
PERL, MODULES = "/usr/bin/perl", "/usr/lib/x86_64-linux-gnu/perl-base"  # what each Debian has

# Rank 0 adds its number to that of rank 1, tells it the sum, and goes on until it finds a file.
SUM = r"""
use strict; use warnings; use IO::Socket::INET;
die "it is root" if $< == 0;
my ($addr, $port, $peer) = ($ENV{MASTER_ADDR}, $ENV{MASTER_PORT});
exit 3 if $ENV{RANK} == 1 && $ENV{TIDEMILL_ATTEMPT_NUMBER} == 1;
$| = 1;
if ($ENV{RANK} == 0) {
	my $listen = IO::Socket::INET->new(LocalAddr => $addr, LocalPort => $port, Listen => 5, ReuseAddr => 1) or die "listen: $!";
	$peer = $listen->accept or die "accept: $!";
	my $sum = 1 + <$peer>;
	print $peer "$sum\n";
	print "the sum is $sum\n";
	select undef, undef, undef, 0.05 until -e "$ENV{TIDEMILL_OUTPUT}/go";
} else {
	for (1 .. 300) { last if $peer = IO::Socket::INET->new(PeerAddr => $addr, PeerPort => $port); select undef, undef, undef, 0.1; }
	print $peer $ENV{RANK} + 1, "\n";
	print "the sum is ", scalar(<$peer>);
	<$peer>; # until the other side has gone
}
"""


def with_perl():
    """The image of the other tests, and Perl."""
    out = io.BytesIO(root_tar())
    libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", PERL], capture_output=True, text=True, check=True).stdout)
    with tarfile.open(fileobj=out, mode="a") as tar:
        there = set(tar.getnames())
        for path in [PERL, *libraries, MODULES]:
            if path.lstrip("/") not in there:
                tar.add(os.path.realpath(path), path.lstrip("/"))
    return out.getvalue()


@pytest.fixture(scope="module")
def workers(server, api, daemon):  # noqa: F811
    """Two in pool `host`, which allow the host's network, and one in pool `own`, which does not."""
    subprocess.run(["docker", "import", "-", IMAGE], input=with_perl(), env=daemon["env"], check=True, capture_output=True)
    made = {}
    try:
        for name, pool, settings in (("h0", "host", {"gang_host_network": 1}), ("h1", "host", {"gang_host_network": 1}),
                                     ("o0", "own", {})):
            made[name] = stack.Worker(server, name, join_token=stack.join_token(api, pool=pool), nvml_library="/nonexistent", runtimes="docker",
                                      docker_socket=daemon["socket"], docker_network="none", **settings).__enter__()
        yield made
    finally:
        for w in made.values():
            w.__exit__(None, None, None)


def gang(script, pool, **keys):
    return {"run": ["/usr/bin/perl", "-e", script], "image": IMAGE, "runtimes": ["docker"], "placement": {"pool": pool, "nodes": 2, "launcher": "plain"},
            "resources": {"cpus": 0.5, "memory": "64MiB"}, "env": {"LC_ALL": "C"}, **keys}


def test_ranks_reach_each_other_and_start_again_together(api, workers, daemon):  # noqa: F811
    run = stack.submit(api, "demo", stack.pipeline("p", {"a": gang(SUM, "host", retries={"user": 1, "backoff": {"first": "0s"}})}))
    step = stack.steps_of(api, run["id"])[0]
    logs = lambda: [api.get(f"/api/v1/steps/{step['id']}/log?raw=true&rank={r}", expect=200).body.decode() for r in (0, 1)]  # noqa: E731

    def attempts():
        return stack.attempts_of(api, step["id"])

    until(lambda: len(attempts()) == 4 and logs() == ["the sum is 3\n"] * 2, 30, 0.1, lambda: f"{attempts()} {logs()}")
    first, second = attempts()[:2], attempts()[2:]
    assert [(a["state"], a["reason"]) for a in first] == [("cancelled", "gang_stopped"), ("failed", "exit_code")]
    assert {a["runtime"] for a in second} == {"docker"} and {a["worker"] for a in second} == {"h0", "h1"}
    for a in second:
        c = json.loads(subprocess.run(["docker", "inspect", a["id"]], env=daemon["env"], check=True, capture_output=True).stdout)[0]
        host = c["HostConfig"]
        assert (host["NetworkMode"], host["Privileged"], host["CapDrop"]) == ("host", False, ["ALL"]), host
        # Those of the init, which the command does not get: see the tests of the runtime.
        assert sorted(x.removeprefix("CAP_") for x in host["CapAdd"]) == ["KILL", "SETGID", "SETUID"]
        assert "no-new-privileges" in str(host["SecurityOpt"]) and host["PortBindings"] in (None, {})
    out = workers[second[0]["worker"]].dir / "work/attempts" / second[0]["id"] / "out"
    (out / "go").touch()
    assert stack.wait_for_run(api, run["id"])["state"] == "succeeded"
    until(lambda: not subprocess.run(["docker", "ps", "-aq"], env=daemon["env"], check=True, capture_output=True).stdout, 30, 0.1, "containers are left")


def test_workers_that_do_not_allow_it_are_given_none(api, workers):
    run = stack.submit(api, "demo", stack.pipeline("q", {"a": gang(SUM, "own")}))
    step = stack.steps_of(api, run["id"])[0]
    [b] = [b for b in api.get(f"/api/v1/steps/{step['id']}/blockers", expect=200).json()["blockers"] if b["kind"] == "isolated"]
    assert b["unsatisfiable"] and "gang-host-network" in b["message"], b
    api.post(f"/api/v1/runs/{run['id']}/cancel", expect=(200, 202))
    assert stack.wait_for_run(api, run["id"])["state"] == "cancelled" and stack.attempts_of(api, step["id"]) == []
    # A step of one worker needs no other's network.
    alone = gang("print qq(alone\\n)", "own")
    alone["placement"] = {"pool": "own"}
    run = stack.submit(api, "demo", stack.pipeline("r", {"a": alone}))
    assert stack.wait_for_run(api, run["id"])["state"] == "succeeded"
