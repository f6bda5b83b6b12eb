"""Registries of images for tests. `Registry` is Debian's docker-registry; `OwnRegistry` speaks the same protocol in a thread
of the test, serves one image, and can be told to be slow, to damage what it sends, or to hold it back."""
import crypt
import gzip
import hashlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from harness import free_port

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Registry:
    """With a password it lets nobody in without; `auth_file` is what the worker needs for it."""

    def __init__(self, user=None, password=None):
        self.folder = tempfile.mkdtemp(prefix="tidemill-registry-")
        self.address = f"127.0.0.1:{free_port()}"
        config = [f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {self.folder}/data}}}}\n"
                  f"http: {{addr: {self.address}}}\n"]
        if user:
            with open(os.path.join(self.folder, "users"), "w") as f:
                f.write(f"{user}:{crypt.crypt(password, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=1 << 5))}\n")
            config.append(f"auth: {{htpasswd: {{realm: test, path: {self.folder}/users}}}}\n")
        with open(os.path.join(self.folder, "config.yml"), "w") as f:
            f.write("".join(config))
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen(["docker-registry", "serve", os.path.join(self.folder, "config.yml")],
                                        stdout=self.log, stderr=self.log)
        host, port = self.address.split(":")
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection((host, int(port)), 1).close()
                break
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end, open(self.log.name).read()
                time.sleep(0.02)

    def auth_file(self, path, **entry):
        with open(path, "w") as f:
            json.dump({"auths": {self.address: entry}}, f)
        os.chmod(path, 0o600)
        return path

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class OwnRegistry:
    """Serves `small:1`, whose one layer is the tar archive that is given."""

    def __init__(self, layer, pause=0.0, pieces=1, damage=False):
        self.pause, self.pieces, self.held = pause, pieces, threading.Event()
        self.held.set()
        zipped = gzip.compress(layer, 1)
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {},
                             "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]}}).encode()
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config),
                       "digest": digest_of(config)},
            "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": len(zipped),
                        "digest": digest_of(zipped)}]}).encode()
        self.digest, self.layer = digest_of(manifest), digest_of(zipped)
        sent = zipped[:-1] + bytes([zipped[-1] ^ 1]) if damage else zipped
        self.answers = {"/v2/": (b"{}", "application/json"), "/v2/small/manifests/1": (manifest, MANIFEST),
                        f"/v2/small/manifests/{self.digest}": (manifest, MANIFEST),
                        f"/v2/small/blobs/{digest_of(config)}": (config, "application/octet-stream"),
                        f"/v2/small/blobs/{self.layer}": (sent, "application/octet-stream")}
        self.asked = []       # paths of whole replies, in order
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                registry.reply(self)
            do_HEAD = do_GET

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_port}"
        self.image = f"{self.address}/small"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def layer_asked(self):
        return self.asked.count(f"/v2/small/blobs/{self.layer}")

    def reply(self, h):
        body, mime = self.answers.get(h.path, (b"{}", None))
        h.send_response(200 if mime else 404)
        for name, value in (("Content-Type", mime or "application/json"), ("Content-Length", str(len(body))),
                            ("Docker-Content-Digest", digest_of(body))):
            h.send_header(name, value)
        h.end_headers()
        if h.command != "GET":
            return
        self.asked.append(h.path)
        pieces = self.pieces if h.path.endswith(self.layer) else 1
        size = -(-len(body) // pieces)
        try:
            for at in range(0, len(body), size):
                self.held.wait(60)
                h.wfile.write(body[at:at + size])
                h.wfile.flush()
                if pieces > 1:
                    time.sleep(self.pause)
        except OSError:
            pass

    def close(self):
        self.held.set()
        self.server.shutdown()
        self.server.server_close()
