"""Keys, tenants, scopes, quotas."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from nearcast.cli import app
from nearcast.errors import NearcastError
from nearcast.service.access import Caller, Gate
from nearcast.service.faults import TooManyError
from nearcast.service.server import is_loopback, make_server
from nearcast.service.settings import Settings
from nearcast.store import open_store
from tests.service.serving import WORLD, running


def test_tenants_do_not_see_each_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    store = open_store(url)
    one = store.api_keys.create("one", "x", frozenset({"admin"}), {}, 0.0)
    two = store.api_keys.create("two", "y", frozenset({"publish", "subscribe", "read"}), {"subscriptions": 1}, 0.0)
    store.close()
    with running(Settings(url), one) as server:
        server.subscribe("j", "ana", "jazz")
        as_two = {"authorization": f"Bearer {two}"}
        client = server.client
        assert client.get("/v1/subscriptions/j", headers=as_two).status_code == 404
        body = {"subscriber": "ana", "expression": "jazz", **WORLD}
        assert client.put("/v1/subscriptions/j", json=body, headers=as_two).status_code == 201
        full = client.put("/v1/subscriptions/k", json=body, headers=as_two)
        assert full.status_code == 429
        assert full.headers["retry-after"] == "60"
        message = {"id": 1, "text": "jazz", "lon": 0, "lat": 0}
        assert client.post("/v1/messages", json=message, headers=as_two).json()["deliveries"] == 1
        assert client.get("/v1/replay", params={"subscriber": "ana"}).text == ""
        assert len(client.get("/v1/replay", params={"subscriber": "ana"}, headers=as_two).text.splitlines()) == 1
        assert client.get("/v1/keys", headers=as_two).status_code == 403
        for wrong in ("", "Bearer nck_wrong", f"Basic {two}"):
            refused = client.get("/v1/subscriptions/j", headers={"authorization": wrong})
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        made = client.post("/v1/keys", json={"name": "r", "scopes": ["read"]}).json()["key"]
        as_reader = {"authorization": f"Bearer {made}"}
        assert client.get("/v1/subscriptions/j", headers=as_reader).status_code == 200
        assert client.post("/v1/messages", json=message, headers=as_reader).status_code == 403
        keys = client.get("/v1/keys").json()
        assert [key["name"] for key in keys] == ["x", "r"]
        assert client.delete(f"/v1/keys/{keys[1]['digest']}").status_code == 204
        assert client.delete(f"/v1/keys/{keys[1]['digest']}").status_code == 404
        assert client.get("/v1/subscriptions/j", headers=as_reader).status_code == 401
        assert client.post("/v1/keys", json={"name": "r", "scopes": ["all"]}).status_code == 422


def test_a_rate_is_kept() -> None:
    store = open_store("memory:")
    now = [0.0]
    gate = Gate(store, lambda: now[0])
    caller = Caller("", frozenset({"publish"}), {"messages_per_second": 10}, "key")
    gate.spend(caller, 10)
    with pytest.raises(TooManyError, match="10 a second allowed"):
        gate.spend(caller, 1)
    now[0] = 0.5
    gate.spend(caller, 5)
    now[0] = 1.5
    gate.spend(caller, 30)  # larger than the bucket: let in when it is full, and paid for later
    now[0] = 3.0
    with pytest.raises(TooManyError):
        gate.spend(caller, 1)
    now[0] = 4.0
    gate.spend(caller, 5)
    gate.spend(Caller(""), 10**9)
    store.close()


def test_other_machines_need_a_key(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")] == [
        *(True, True, True),
        *(False, False),
    ]
    with pytest.raises(NearcastError, match="nearcast key create first"):
        make_server(Settings(store), "0.0.0.0", 0)
    run = CliRunner().invoke(app, ["key", "create", "ci", "--scope", "publish", "--tenant", "t", "--store", store])
    assert run.output.startswith("nck_")
    make_server(Settings(store), "0.0.0.0", 0)
    listed = CliRunner().invoke(app, ["key", "list", "--store", store]).output
    assert listed.split()[1:] == ["t", "ci", "publish"]
    assert CliRunner().invoke(app, ["key", "revoke", listed.split()[0], "--store", store]).exit_code == 0
    assert CliRunner().invoke(app, ["key", "revoke", "x", "--store", store]).exit_code == 1
    assert CliRunner().invoke(app, ["key", "list", "--store", store]).output == ""
