"""Proxies that stand between the parts of an installation in tests. Standard library only; each has a thread and an event
loop of its own.

    with Balancer([one.port, two.port]) as lb:      # TCP: what a load balancer does
        ...lb.port...

    with FaultProxy(server.port, rule) as proxy:    # HTTP/1.1: duplicates, drops, delays, cuts
        ...proxy.port...

`rule(request)` is asked for each request and returns None (pass on) or one of the faults below. The proxy notes what it has
done in `done`, a Counter by fault, so that a test can tell that something has happened at all.
"""
import asyncio
import collections
import threading


class _Threaded:
    """An asyncio server on a port of 127.0.0.1 in a thread of its own."""

    def __init__(self, host="127.0.0.1"):
        self.host, self.port = host, None
        self.tasks = set()

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = asyncio.run_coroutine_threadsafe(self._open(), self.loop).result(10)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *exc):
        asyncio.run_coroutine_threadsafe(self._shut(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    async def _open(self):
        return await asyncio.start_server(self._accept, self.host, 0, limit=1 << 20)

    async def _shut(self):
        self.server.close()
        for t in list(self.tasks):
            t.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _accept(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            writer.close()


async def _pump(reader, writer):
    """Copies until the end, and passes the end on."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.close()


class Balancer(_Threaded):
    """Connections go to the backends (ports) in turn, past those that do not accept."""

    def __init__(self, ports, **kw):
        super().__init__(**kw)
        self.ports, self.next = list(ports), 0

    async def _connect(self):
        for _ in self.ports:
            port = self.ports[self.next % len(self.ports)]
            self.next += 1
            try:
                return await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
        raise ConnectionRefusedError

    async def _serve(self, reader, writer):
        there, back = await self._connect()
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            back.close()


Request = collections.namedtuple("Request", "method path body")
MUTATING = ("POST", "PUT", "PATCH", "DELETE")


def twice(answer):
    """The request is sent two times, one after the other; the client sees the answer of the first or the second."""
    return "twice-" + answer


AT_ONCE = "at once"        # two times at the same time; the client sees the answer of one of them
DROP = "drop"              # the server does its work, and the client's connection breaks without a reply
CUT_REQUEST = "cut request"  # half of the body arrives, then both connections break
CUT_REPLY = "cut reply"    # half of the reply arrives, then the connection breaks
DELAY = "delay"            # by `delay` seconds


class FaultProxy(_Threaded):
    """HTTP/1.1 to one server. Bodies of requests are held in memory; replies stream, unless a fault needs them whole."""

    def __init__(self, port, rule, delay=0.3, **kw):
        super().__init__(**kw)
        self.backend, self.rule, self.delay = port, rule, delay
        self.done = collections.Counter()

    async def _serve(self, reader, writer):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")[:-2]
            method, path, _ = lines[0].split(" ")
            headers = [tuple(x.split(": ", 1)) for x in lines[1:]]
            body = await self._body(reader, writer, {k.lower(): v for k, v in headers})
            kept = [(k, v) for k, v in headers if k.lower() not in ("connection", "expect", "transfer-encoding", "content-length")]
            kept += [("Connection", "close")] + ([("Content-Length", str(len(body)))] if body or method in MUTATING else [])
            packed = "\r\n".join([lines[0]] + [f"{k}: {v}" for k, v in kept]).encode("latin-1") + b"\r\n\r\n" + body
            fault = self.rule(Request(method, path, body))
            self.done[fault] += 1
            await self._do(fault, packed, len(packed) - len(body) // 2, reader, writer)
            return  # the server's reply has said that the connection ends

    async def _body(self, reader, writer, headers):
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await reader.readexactly(int(headers.get("content-length", 0)))
        out = b""
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            out += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        return out

    async def _ask(self, packed):
        """The whole reply."""
        there, back = await asyncio.open_connection("127.0.0.1", self.backend)
        try:
            back.write(packed)
            await back.drain()
            return await there.read()
        finally:
            back.close()

    async def _do(self, fault, packed, middle, reader, writer):
        if fault is None:
            await self._pass(packed, reader, writer)
        elif fault == DELAY:
            await asyncio.sleep(self.delay)
            await self._pass(packed, reader, writer)
        elif fault == CUT_REQUEST:
            _, back = await asyncio.open_connection("127.0.0.1", self.backend)
            back.write(packed[:middle])
            await back.drain()
            await asyncio.sleep(0.05)
            back.transport.abort()
            writer.transport.abort()
        elif fault == DROP:
            await self._ask(packed)
            writer.transport.abort()
        elif fault == CUT_REPLY:
            reply = await self._ask(packed)
            writer.write(reply[:len(reply) // 2])
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.transport.abort()
        elif fault == AT_ONCE:
            both = [asyncio.ensure_future(self._ask(packed)) for _ in range(2)]
            try:
                writer.write(await both[self.done[fault] % 2])
            finally:
                # A request that waits at the server may do so for long after the other has been answered.
                both[1 - self.done[fault] % 2].add_done_callback(lambda t: t.cancelled() or t.exception())
                self.tasks.update(t for t in both if not t.done())
        else:
            replies = [await self._ask(packed), await self._ask(packed)]
            writer.write(replies[fault == twice("second")])
        if not writer.is_closing():
            await writer.drain()

    async def _pass(self, packed, reader, writer):
        """The reply as it comes, until either side leaves."""
        there, back = await asyncio.open_connection("127.0.0.1", self.backend)
        left = asyncio.ensure_future(reader.read(1))
        pump = asyncio.ensure_future(_pump(there, writer))
        try:
            back.write(packed)
            await back.drain()
            await asyncio.wait([left, pump], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for t in (left, pump):
                t.cancel()
            await asyncio.gather(left, pump, return_exceptions=True)
            back.close()
