"""Two local users of a real JupyterHub: their servers, notebooks, terminals and GPU leases."""

from __future__ import annotations

import json
import sys
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import websocket

from jupyter_dist_server import __version__

from ..fake_nvml.build import State
from ..fake_nvml.four_gpus import MACHINE, NAMES
from ..waiting import wait_for
from .hub import BASE, SYSTEM_PATH, Hub, HubNotebook, UserServer, why_not
from .local_users import local_users, processes_of, reachable

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(why_not()), reason=why_not())]

SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint('sum', t.item())"


@pytest.fixture(scope="module")
def hub(fake_nvml_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Return a hub on a machine with four GPUs, for two new users."""
    folder = tmp_path_factory.mktemp("hub")
    state = State(folder / "nvml-state")
    state.write(**MACHINE)
    leases = folder / "leases"
    leases.mkdir()
    leases.chmod(0o1777)  # as an administrator does it, see docs/jupyterhub.md
    environment = state.environment(fake_nvml_folder) | {"JUPYTER_DIST_LEASES": str(leases)}
    users = tuple(f"jdist-{uuid.uuid4().hex[:8]}-{letter}" for letter in "ab")
    entered = (Path(sys.executable), Path(__file__), state.path, fake_nvml_folder / "library")
    with reachable(*entered), local_users(folder, *users):
        hub = Hub(folder, users, environment)
        try:
            yield hub
        finally:
            hub.close()


@pytest.fixture(scope="module")
def servers(hub: Hub) -> tuple[UserServer, UserServer]:
    """Return the servers of both users."""
    first, second = (hub.start_server(user) for user in hub.users)
    return first, second


@pytest.fixture(scope="module")
def notebook(servers: tuple[UserServer, UserServer]) -> Iterator[HubNotebook]:
    """Return a notebook of the first user, with a pool on two of the four GPUs."""
    notebook = HubNotebook(servers[0])
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 2")
    yield notebook
    notebook.close()


def test_rest_works_below_the_base_url(servers: tuple[UserServer, UserServer]) -> None:
    for server in servers:
        client = server.client(server.token)
        assert BASE in client.base
        assert client.get("pools") == {"pools": []}
        assert [gpu["uuid"] for gpu in client.get("gpus")["gpus"]] == NAMES


def test_the_other_user_sees_the_leases(
    servers: tuple[UserServer, UserServer], notebook: HubNotebook
) -> None:
    assert notebook.ok(SUM).lines == ["[0-1] sum 2.0"]
    (pool,) = servers[0].pools()
    assert servers[1].pools() == []
    seen = servers[1].client(servers[1].token).get("gpus")["leases"]
    holders = {(lease["user"], lease["pool"]) for lease in seen.values()}
    assert (len(seen), holders) == (2, {(servers[0].user, pool["id"])})


def test_a_server_refuses_the_other_users_token(servers: tuple[UserServer, UserServer]) -> None:
    for server, other in (servers, servers[::-1]):
        client = server.client(other.token)
        for path in ("jupyter-dist/", "jupyter-dist/status", "jupyter-dist/pools", "api/kernels"):
            assert client.raw("GET", path).status == 403, path
        assert client.raw("POST", "jupyter-dist/pools", body={"num_ranks": 1}).status == 403
        with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
            server.socket("jupyter-dist/stream", other.token)
        server.socket("jupyter-dist/stream", server.token).close()


def test_notebooks_and_terminals_find_jdist(
    servers: tuple[UserServer, UserServer], notebook: HubNotebook
) -> None:
    path = f"{SYSTEM_PATH}:{sysconfig.get_path('scripts')}"
    assert notebook.ok("!echo $PATH; jdist --version").lines == [path, __version__]
    terminal = servers[0].api("POST", "api/terminals")["name"]
    socket = servers[0].socket(f"terminals/websocket/{terminal}", servers[0].token)
    socket.send(json.dumps(["stdin", "echo $PATH; jdist --version; exit\r"]))
    shown = ""
    while (message := json.loads(socket.recv()))[0] != "disconnect":
        shown += message[1] if message[0] == "stdout" else ""
    socket.close()
    assert {path, __version__} <= set(shown.replace("\r", "\n").splitlines())


@pytest.mark.usefixtures("notebook")
def test_the_hub_stops_servers_and_all_that_they_have_started(
    hub: Hub, servers: tuple[UserServer, UserServer]
) -> None:
    first, second = servers
    (pool,) = first.pools()
    hub.stop_server(first.user)
    wait_for(lambda: not processes_of(first.user), "the end of its processes")
    assert not Path(pool["folder"]).exists()
    assert second.client(second.token).get("gpus")["leases"] == {}
    hub.stop_server(second.user)
    wait_for(lambda: not processes_of(second.user), "the end of its processes")
