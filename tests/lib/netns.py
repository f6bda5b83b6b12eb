"""A network namespace for a worker, with one cable to the host that can be cut. Root and iproute2.

    with Namespace() as ns:
        Worker(server, "w", url=f"http://{ns.host}:{port}", prefix=ns.prefix, insecure_http=1)
        ns.cut(); ns.heal()
"""
import itertools
import os
import random
import shutil
import subprocess

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
