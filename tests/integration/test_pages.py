"""What the server answers outside of /api: the dashboard's pages, the contract, and nothing else."""
import re

import pytest

from harness import ROOT

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
BUILT = (ROOT / "web/dist/index.html").exists()


def is_page(reply):
    if not BUILT:
        return reply.status == 404 and "built without its dashboard" in reply.json()["detail"]
    return reply.status == 200 and reply.body.lower().startswith(b"<!doctype html>")


def is_missing(reply):
    return (reply.status, reply.headers["Content-Type"]) == (404, "application/problem+json") and \
        reply.json()["detail"] == "There is nothing at this address"


def pages():
    return re.findall(r'<Route path="([^"]+)"', (ROOT / "web/src/app.tsx").read_text())


@pytest.mark.parametrize("page", pages())
def test_every_page_of_the_dashboard(server, page):
    client = server.client()
    path = re.sub(":[a-z]+", "a-name.1", page)
    assert is_page(client.get(path, headers=BROWSER))
    assert is_page(client.get(path, headers=BROWSER | {"Accept": "text/html"}))
    if page != "/":
        assert is_missing(client.get(path, headers={"Accept": "application/json"}))
        assert is_missing(client.get(path))


@pytest.mark.parametrize("path", ["/nope", "/openapi.yaml", "/swagger", "/projects", "/runs", "/runs/a/b", "/projects/p/nope", "/index",
                                  "/assets/none.js", "/.git/config", "/apiv1", "/metrics/x", "/%20"])
def test_no_page_for_anything_else(server, path):
    for headers in (BROWSER, {"Accept": "application/json"}, {}):
        assert is_missing(server.client().get(path, headers=headers)), headers


def test_nothing_of_the_api_is_a_page(server):
    for path in ("/api", "/api/", "/api/v1/nope", "/api/2.0/mlflow/nope"):
        assert server.client().get(path, headers=BROWSER).status == 404
        assert b"<html" not in server.client().get(path, headers=BROWSER).body


def test_the_contract_is_where_one_looks_first(server):
    client = server.client()
    short = client.get("/openapi.json", expect=200)
    assert short.headers["Content-Type"] == "application/json" and short.json()["openapi"] == "3.1.0"
    assert short.body == client.get("/api/v1/openapi.json", expect=200).body
