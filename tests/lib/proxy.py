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
