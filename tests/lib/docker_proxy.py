"""In front of a Docker daemon's socket, on one of its own: lets a test change what is asked and what is answered, and hold
requests back. Replies are passed on when they are whole; nothing is attached to."""
import http.client
import http.server
import os
import socket
import socketserver
import tempfile
import threading


def connect(path):
    """An HTTP connection to a daemon."""
    api = http.client.HTTPConnection("docker")
    api.sock = socket.socket(socket.AF_UNIX)
    api.sock.connect(path)
    return api


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128


class DockerProxy:
    """ask(method, path, body) → body; answer(path, body) → body."""

    def __init__(self, target, ask=lambda method, path, body: body, answer=lambda path, body: body):
        self.folder = tempfile.mkdtemp(prefix="tidemill-proxy-")
        self.socket = os.path.join(self.folder, "docker.sock")

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def serve(self):
                body = ask(self.command, self.path, self.rfile.read(int(self.headers.get("Content-Length", 0))))
                upstream = connect(target)
                upstream.request(self.command, self.path, body,
                                 {k: v for k, v in self.headers.items() if k.lower() in ("content-type", "x-registry-auth")})
                reply = upstream.getresponse()
                data = answer(self.path, reply.read())
                upstream.close()
                try:
                    self.send_response(reply.status)
                    self.send_header("Content-Type", reply.getheader("Content-Type", "application/json"))
                    if reply.status not in (204, 304):
                        self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data if reply.status not in (204, 304) else b"")
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_DELETE = serve
        self.server = Server(self.socket, Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
        os.unlink(self.socket)
        os.rmdir(self.folder)
