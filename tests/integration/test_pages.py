"""Pages of lists whose items are large."""
from harness import query
from stack import pipeline


def test_a_page_of_large_items_is_cut_and_the_next_goes_on(server, api, project):
    source = pipeline("p0", {"a": {"run": ["true"]}}) + "\n" + ("#" + "x" * 120 + "\n") * 8000
    api.put(f"/api/v1/projects/{project}/pipelines/p0", {"source": source}, expect=200)
    server.sql("INSERT INTO pipeline SELECT (jsonb_populate_record(p, jsonb_build_object('id', 'pl_' || i,"
               " 'name', 'p' || i))).* FROM pipeline p, generate_series(1, 120) i WHERE p.name = 'p0'")
    names, sizes, cursor = [], [], None
    while cursor is not None or not names:
        page = api.get(f"/api/v1/projects/{project}/pipelines?" + query(limit=500, **({"cursor": cursor} if cursor else {})), expect=200)
        items = page.json()["items"]
        assert items and all(len(i["source"]) == len(source) for i in items)
        names += [i["name"] for i in items]
        sizes.append(len(page.body))
        cursor = page.json().get("next_cursor")
    assert sorted(names) == sorted(f"p{i}" for i in range(121)) and names == sorted(names)
    assert len(sizes) > 3 and max(sizes) < 24 << 20
