"""What a pool survives: the end of its server, of its kernel, and of another boot's."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.jobs.leases.lease import Lease
from jupyter_dist_server.jobs.schedule.board import posted

from ..environment import named, tagged
from ..fake_nvml.build import State
from ..notebook_driver import Notebook
from ..server_driver import Server
from ..waiting import wait_for

LAUNCH = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
HARDY = {
    "argv": ["env", "-u", "JPY_PARENT_PID", *LAUNCH],
    "display_name": "A kernel that does not end with its server",
    "language": "python",
}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers one after the other, for the same notebooks."""
    (tmp_path / "root").mkdir()
    spec = tmp_path / "home" / "data" / "kernels" / "hardy"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(json.dumps(HARDY))
    servers: list[Server] = []

    def start(*options: str, **variables: str) -> Server:
        servers.append(Server(tmp_path / "home", tmp_path / "root", *options, **variables))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            server.process.wait()
    for server in servers:
        for process in tagged(server.env):
            with suppress(psutil.Error):  # it may end meanwhile
                if "ipykernel_launcher" in process.cmdline():
                    process.kill()  # one that has survived its server, as it should
        wait_for(lambda server=server: not tagged(server.env), "the end of all processes")


def started(server: Server, kernel: str = "python3") -> Notebook:
    notebook = server.notebook(kernel)
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 2")
    notebook.ok("%%distributed\nkept = 7")
    return notebook


def kill(server: Server) -> None:
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()


def pool_when(server: Server, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Return the server's only living pool as soon as `condition` holds of it."""

    def look() -> dict[str, Any] | None:
        pools = server.pools()
        return pools[0] if len(pools) == 1 and condition(pools[0]) else None

    pool: dict[str, Any] = wait_for(look, "the pool's change")
    return pool


def test_a_killed_server_ends_no_cell_and_the_next_one_adopts_the_pool(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    first = serve()
    notebook = started(first, "hardy")
    before = first.pools()[0]
    go = tmp_path / "go"
    code = (
        "%%distributed\nimport time\nfrom pathlib import Path\nprint('in', flush=True)\n"
        f"while not Path({str(go)!r}).exists(): time.sleep(0.01)\nprint('out')"
    )
    result = notebook.run(code, until=lambda r: "in" in r.text, act=lambda: kill_and_go(first, go))
    assert result.status == "ok" and "out" in result.text

    # Nobody but the agent is there to be asked.
    assert "idle" in notebook.ok("%dist_status").text
    notebook.ok("%dist_interrupt")

    second = serve()
    pool = pool_when(second, lambda pool: pool["state"] == "RUNNING")
    assert pool["id"] == before["id"] and pool["orphaned"] is None
    assert [rank["pid"] for rank in pool["ranks"]] == [rank["pid"] for rank in before["ranks"]]
    assert {who["as"] for who in pool["attachments"]} == {"server", "kernel"}
    assert pool["started"] <= before["started"], "it is as old as before"
    assert notebook.ok("%%distributed\nkept").lines == ["[0-1] 7"]

    second.api("POST", f"jupyter-dist/pools/{pool['id']}/restart")
    pool_when(second, lambda pool: pool["state"] == "RUNNING" and pool["generation"] == 2)
    assert "NameError" in notebook.fails("%%distributed\nkept")
    second.api("DELETE", f"jupyter-dist/pools/{pool['id']}?wait=1")
    assert notebook.refused("%%distributed\n1") == "no_pool"


def kill_and_go(server: Server, go: Path) -> None:
    kill(server)
    go.touch()


def test_an_adopted_pool_shows_the_cell_that_runs(serve: Callable[..., Server]) -> None:
    first = serve()
    notebook = started(first, "hardy")
    begun = time.time()
    notebook.send("%%rank 1\nimport time\nwhile True: time.sleep(0.01)")

    def runs(pool: dict[str, Any]) -> bool:
        """Say whether that cell runs: the server may tell of the cell before it a moment later."""
        rank = pool["ranks"][1]
        return bool(rank["state"] == "busy" and rank["since"] > begun)

    known = pool_when(first, runs)["ranks"][1]
    killed = time.time()
    kill(first)
    second = serve()
    pool = pool_when(second, lambda pool: pool["ranks"][1]["state"] == "busy")
    assert [rank["cell"] for rank in pool["ranks"]] == [known["cell"] - 1, known["cell"]]
    assert begun < pool["ranks"][1]["since"] < killed, "not since it was adopted"
    second.api("POST", f"jupyter-dist/pools/{pool['id']}/interrupt", {})
    pool_when(second, lambda pool: pool["ranks"][1]["state"] == "idle")


def test_the_pool_of_a_notebook_without_server_can_be_stopped_from_it(
    serve: Callable[..., Server],
) -> None:
    first = serve()
    notebook = started(first, "hardy")
    folder = Path(first.pools()[0]["folder"])
    kill(first)
    assert notebook.ok("%dist_restart").status == "ok"
    assert notebook.ok("%dist_shutdown").lines == ["Stopped 2 ranks."]
    assert not folder.exists()
    notebook.ok("%dist_init -n 1")
    notebook.ok("%dist_shutdown")


def is_kernel(process: psutil.Process) -> bool:
    try:
        return "ipykernel_launcher" in process.cmdline()
    except psutil.Error:  # it has ended meanwhile
        return False


def test_a_pool_whose_kernel_died_with_its_server_is_adopted_and_can_be_used(
    serve: Callable[..., Server],
) -> None:
    first = serve("--JupyterDistApp.orphan_grace=60")
    started(first)
    kill(first)
    wait_for(
        lambda: not [p for p in tagged(first.env) if is_kernel(p)],
        "the kernel's end",
    )
    second = serve()
    orphan = pool_when(second, lambda pool: pool["orphaned"])
    guest = second.notebook()
    guest.ok("%load_ext jupyter_dist_server")
    said = guest.ok("%dist_attach").lines
    assert said == [f"Attached to pool {orphan['id']} of 2 ranks."]
    assert guest.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    successor = pool_when(second, lambda pool: pool["kernel_id"] == guest.kernel_id)
    assert successor["orphaned"] is None
    guest.close()  # it is its pool now, and ends with it


def test_a_pool_is_orphaned_when_its_kernel_is_killed_and_ends_after_the_grace_time(
    serve: Callable[..., Server],
) -> None:
    # Otherwise the server starts the kernel again, which is no loss.
    server = serve("--JupyterDistApp.orphan_grace=7", "--KernelManager.autorestart=False")
    notebook = started(server)
    pid = int(notebook.ok("import os\nprint(os.getpid())").text)
    psutil.Process(pid).kill()
    orphan = pool_when(server, lambda pool: pool["orphaned"])
    ended = server.api(
        "GET", f"jupyter-dist/pools/{orphan['id']}?wait=30&after={orphan['version']}"
    )
    while ended["ended"] is None:
        query = f"?wait=30&after={ended['version']}"
        ended = server.api("GET", f"jupyter-dist/pools/{orphan['id']}{query}")
    assert ended["reason"]["code"] == "orphaned"
    assert "had been gone for 7 s" in ended["reason"]["message"]
    assert ended["ended"] - orphan["orphaned"] >= 7


def test_pools_can_outlive_a_server_that_is_shut_down(serve: Callable[..., Server]) -> None:
    first = serve("--JupyterDistApp.stop_pools_on_exit=False")
    started(first)
    pool = first.pools()[0]
    first.process.send_signal(signal.SIGTERM)
    first.process.wait()
    second = serve()
    adopted = pool_when(second, lambda pool: pool["state"] == "RUNNING")
    assert adopted["id"] == pool["id"]
    second.api("DELETE", f"jupyter-dist/pools/{pool['id']}?wait=1")


def test_what_an_earlier_boot_left_is_removed_and_nothing_signalled(
    serve: Callable[..., Server],
) -> None:
    first = serve()
    started(first)
    folder = Path(first.pools()[0]["folder"])
    config = json.loads((folder / "pool.json").read_text())
    left = folder.parent / "jdist-earlier"
    left.mkdir(mode=0o700)
    (left / "pool.json").write_text(json.dumps(config | {"boot": "another", "id": "p-earlier"}))
    second = serve()
    assert second.pools() == []  # the first one holds its own
    pool = second.api("POST", "jupyter-dist/pools", {"num_ranks": 1})
    wait_for(lambda: not left.exists(), "the removal")
    assert all(psutil.pid_exists(rank["pid"]) for rank in first.pools()[0]["ranks"])
    second.api("DELETE", f"jupyter-dist/pools/{pool['id']}?wait=1")


def test_a_killed_agent_leaves_nothing_of_its_ranks(serve: Callable[..., Server]) -> None:
    server = serve()
    notebook = started(server)
    code = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\nNone"
    notebook.ok(f"%%distributed\n{code}")
    ranks = server.pools()[0]["ranks"]
    psutil.Process(ranks[0]["pid"]).parent().kill()
    wait_for(lambda: not server.pools(), "the pool's end")
    assert notebook.refused("%%distributed\n1") == "agent_failed"
    for name in ("sleep", "dist-rank-0", "dist-rank-1"):
        assert not named(server.env, name)


def test_a_pool_that_waits_for_gpus_loses_its_place_with_its_server(
    serve: Callable[..., Server], gpus: State
) -> None:
    server = serve(JUPYTER_DIST_LEASES=os.environ["JUPYTER_DIST_LEASES"])
    notebook = server.notebook("hardy")
    notebook.ok("%load_ext jupyter_dist_server")
    four = [f"GPU-fake-{number}" for number in range(4)]
    with closing(Lease.take(four, Leaseholder(pool="p-1", pid=os.getpid()))):
        sent = notebook.send("%dist_init -n 1 --wait")
        result = notebook.follow(
            sent, until=lambda result: "No GPU is free" in result.shown, act=lambda: kill(server)
        )
        assert notebook.error_code() == "server_unreachable"
        assert posted() == []
        assert "The Jupyter server (pid " in result.error
