"""How mpirun reaches another rank, in place of ssh, which needs users with shells and keys: `serve` on that rank, and
`run HOST COMMAND…` as mpirun's agent. A command goes over, its output comes back, and its exit code as the last line."""
import os
import socket
import subprocess
import sys
import time

PORT = int(os.environ["TIDEMILL_MASTER_PORT"])


def serve():
    own = os.environ["TIDEMILL_NODE_IPS"].split("\n")[int(os.environ["TIDEMILL_NODE_RANK"])]
    with socket.create_server((own, PORT)) as listener:
        while True:
            peer, _ = listener.accept()
            with peer, peer.makefile("rwb") as f:
                size = int(f.readline())
                command = f.read(size).decode()
                print("serving", command.split(" ", 1)[0], flush=True)
                code = subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=peer.fileno(), stderr=subprocess.STDOUT).returncode
                f.write(f"\n{code}\n".encode())


def run(host, *words):
    command, end = " ".join(words).encode(), time.monotonic() + 30
    while True:  # it begins when we do
        try:
            peer = socket.create_connection((host, PORT), 5)
            break
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    peer.settimeout(None)
    with peer, peer.makefile("rwb") as f:
        f.write(b"%d\n%s" % (len(command), command))
        f.flush()
        said = f.read()
    output, code = said.rstrip(b"\n").rsplit(b"\n", 1)
    sys.stdout.buffer.write(output)
    sys.exit(int(code))


{"serve": serve, "run": run}[sys.argv[1]](*sys.argv[2:])
