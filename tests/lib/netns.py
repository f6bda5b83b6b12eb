"""A network namespace for a worker, with one cable to the host that can be cut. Root and iproute2.

    with Namespace() as ns:
        Worker(server, "w", url=f"http://{ns.host}:{port}", prefix=ns.prefix, insecure_http=1)
        ns.cut(); ns.heal()

And several hosts that reach each other, and this one, through a switch, each with a name of its own that all of them know:

    with Switch(2) as net:
        Worker(server, "w", url=f"http://{net.host}:{port}", prefix=net.hosts[0].prefix, insecure_http=1)
"""
import itertools
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

_count = itertools.count()


def missing():
    """Why there can be none here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    return None if shutil.which("ip") and shutil.which("nsenter") else "iproute2 and util-linux are missing"


def _ip(*args):
    done = subprocess.run(["ip", *args], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"ip {' '.join(args)}: {done.stderr}"


class Namespace:
    def __init__(self):
        n = next(_count)
        self.name = f"tidemill-{os.getpid()}-{n}"
        self.cable, self.far = f"tmh{os.getpid() % 100000}.{n}", f"tmn{os.getpid() % 100000}.{n}"
        net = random.SystemRandom().randrange(1 << 14)  # of 10.214.0.0/16, four addresses
        self.host, self.guest = (f"10.214.{net >> 6}.{(net & 63) * 4 + i}" for i in (1, 2))
        self.prefix = ["nsenter", f"--net=/run/netns/{self.name}", "--"]

    def __enter__(self):
        _ip("netns", "add", self.name)
        try:
            _ip("link", "add", self.cable, "type", "veth", "peer", "name", self.far, "netns", self.name)
            _ip("address", "add", f"{self.host}/30", "dev", self.cable)
            _ip("link", "set", self.cable, "up")
            _ip("-n", self.name, "address", "add", f"{self.guest}/30", "dev", self.far)
            _ip("-n", self.name, "link", "set", "lo", "up")
            _ip("-n", self.name, "link", "set", self.far, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def cut(self):
        """Neither side hears anything of it, or of the other."""
        _ip("link", "set", self.cable, "down")

    def heal(self):
        _ip("link", "set", self.cable, "up")

    def __exit__(self, *exc):
        subprocess.run(["ip", "link", "delete", self.cable], capture_output=True, timeout=30)
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, timeout=30)


class Host:
    """One of a switch. prefix: what makes a command run there."""

    def __init__(self, name, address, namespace, hosts):
        self.name, self.address = name, address
        script = f'hostname {name} && mount --bind {hosts} /etc/hosts && exec "$@"'
        self.prefix = ["nsenter", f"--net=/run/netns/{namespace}", "--", "unshare", "--uts", "--mount", "/bin/sh", "-ec", script, "sh"]


class Switch:
    """The switch is in a namespace, too, so that no packet filter of this host has a say."""

    def __init__(self, n):
        self.name = f"tidemill-{os.getpid()}-{next(_count)}"
        net = random.SystemRandom().randrange(1 << 12)  # of 10.215.0.0/16, sixteen addresses
        self._addresses = [f"10.215.{net >> 4}.{(net & 15) * 16 + i}" for i in range(1, n + 2)]
        self.host = self._addresses[0]
        self._made = []

    def _namespace(self, name):
        _ip("netns", "add", name)
        self._made.append(name)

    def _plug(self, i, namespace):
        """A cable from port i to there; None: to this host."""
        cable = f"tms{os.getpid() % 100000}.{i}"
        where = ["netns", namespace] if namespace else []
        _ip("link", "add", cable, *where, "type", "veth", "peer", "name", f"port{i}", "netns", self.name)
        _ip("-n", self.name, "link", "set", f"port{i}", "master", "switch", "up")
        there = ["-n", namespace] if namespace else []
        _ip(*there, "address", "add", f"{self._addresses[i]}/28", "dev", cable)
        if namespace:
            _ip(*there, "link", "set", "lo", "up")
        _ip(*there, "link", "set", cable, "up")

    def __enter__(self):
        self._dir = Path(tempfile.mkdtemp(prefix="tidemill-net-", dir="/tmp"))
        self._dir.chmod(0o755)
        hosts = self._dir / "hosts"
        names = [f"node-{i}.test" for i in range(len(self._addresses) - 1)]
        hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for a, n in zip(self._addresses[1:], names)))
        self.hosts = []
        try:
            self._namespace(self.name)
            _ip("-n", self.name, "link", "add", "switch", "type", "bridge")
            _ip("-n", self.name, "link", "set", "switch", "up")
            self._plug(0, None)
            for i, name in enumerate(names, 1):
                self._namespace(f"{self.name}.{i}")
                self._plug(i, f"{self.name}.{i}")
                self.hosts.append(Host(name, self._addresses[i], f"{self.name}.{i}", hosts))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        """The cables go with the namespaces that hold one end of them."""
        for name in self._made:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=30)
        shutil.rmtree(self._dir, ignore_errors=True)
