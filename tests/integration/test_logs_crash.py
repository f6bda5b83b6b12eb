"""A log over a crash of PostgreSQL and of the server: the worker goes on where it is told, and nothing is missing."""
from harness import Postgres, Server, until
from spool import Attempt, Worker, frames


def ship(attempt, spool, edges, held, stop_at=None):
    """As the worker does: send from what the server holds, go where it says; no answer means again."""
    while held < (stop_at or len(spool)):
        end = next(e for e in edges if e > held)
        try:
            reply = attempt.put(spool[held:end], held)
        except OSError:
            continue
        if isinstance(reply, int):
            held = reply
        else:
            assert reply.status in (500, 503, 504), reply
    return held


def test_crashes():
    pieces = [frames(f"line {i} {'x' * (i % 300)}\n") for i in range(600)]
    spool, edges = b"".join(pieces), []
    for p in pieces:
        edges.append((edges[-1] if edges else 0) + len(p))
    with Postgres() as pg, Server(pg) as server:
        api = server.admin()
        project_id = api.post("/api/v1/projects", {"name": "crash"}, expect=201).json()["id"]
        attempt = Attempt(server, Worker(server, "crash-worker"), project_id)
        held = ship(attempt, spool, edges, 0, edges[200])
        pg.crash()
        pg.start()
        held = ship(attempt, spool, edges, held, edges[400])
        stored = int(server.sql(f"SELECT length FROM log WHERE attempt_id = '{attempt.id}'")[0])
        assert stored == held
        server.kill()
        server.start()
        ship(attempt, spool, edges, held)
        until(lambda: attempt.final(spool) == len(spool), 20)
        pg.crash()  # final is durable
        pg.start()
        until(server.ready, 30)
        text = until(lambda: server.admin().get(f"/api/v1/attempts/{attempt.id}/log?raw=true"), 10)
        assert text.body == b"".join(f"line {i} {'x' * (i % 300)}\n".encode() for i in range(600))
        assert server.sql(f"SELECT final FROM log WHERE attempt_id = '{attempt.id}'") == ["t"]
