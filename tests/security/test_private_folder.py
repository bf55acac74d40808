"""What another user has made is adopted by nobody, and what is ours says nothing to another."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jupyter_dist_server.client.agent_link import AgentLink
from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.common.processes.process_ref import ProcessRef
from jupyter_dist_server.common.protocol.agents.agent_messages import Snapshot, encode
from jupyter_dist_server.common.protocol.agents.attachment import SERVER
from jupyter_dist_server.pools.discovery import find_pools, sweep

from ..pool_driver import pool_file, processes, request, running
from ..server.client import Client
from ..server.stalls import check, configuration
from ..server_driver import Server
from ..waiting import wait_for
from . import stranger

pytestmark = pytest.mark.stranger

FAKE = """
# A pool that runs, by all that can be seen; its snapshot names a process to be killed.
folder, config, snapshot = sys.argv[1:]
os.umask(0)
os.mkdir(folder)
open(folder + "/pool.json", "w").write(config)
agent = socket.socket(socket.AF_UNIX)
agent.bind(folder + "/agent.sock")
agent.listen(5)
print("ready", flush=True)
while True:
    sock, _ = agent.accept()
    try:
        sock.sendall(snapshot.encode() + b"\\n")
    except OSError:  # refused
        pass
"""
LINK = "os.symlink(*sys.argv[1:])"
FLOOD = """
for i in range(100_000):
    os.symlink("/", f"{sys.argv[1]}/jdist-{i}")
"""
LISTEN = """
sock = socket.socket(socket.AF_UNIX)
sock.settimeout(20)
try:
    sock.connect(sys.argv[1])
    sock.sendall(b'{"do": "stop"}\\n')
    print(sock.recv(1000))
except OSError as error:
    print(type(error).__name__)
"""


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a temporary folder where all may write and, as nothing protects them, links lead."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="jo-"))
    folder.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder)


async def test_a_pool_that_another_user_made_is_not_adopted(open_folder: Path) -> None:
    us = ProcessRef.of(os.getpid())
    config = pool_file(id="p-evil", owner_kind=SERVER)
    snapshot = Snapshot(us, 1, "fork", "gloo", [], None, False, [], [])
    folder, link = open_folder / "jdist-evil", open_folder / "jdist-link"
    other = stranger.begin(
        FAKE, folder, msgspec.json.encode(config).decode(), encode(snapshot).decode().strip()
    )
    try:
        assert other.stdout and other.stdout.readline() == "ready\n"
        stranger.said(LINK, folder, link)
        assert link.is_symlink()

        async def refused() -> None:
            assert list(find_pools()) == []
            sweep()
            for path in (folder, link):
                with pytest.raises(OSError):
                    PoolClient(path)
                with pytest.raises(PermissionError, match=str(stranger.UID)):
                    await AgentLink(lambda _: None).connect(path)

        await refused()
        os.lchown(link, os.getuid(), os.getgid())  # a link of ours is no folder of ours either
        await refused()
        real = Path(tempfile.mkdtemp(prefix="jdist-"))  # one of ours, with another's file in it
        real.chmod(0o777)
        stranger.said(LINK, folder / "pool.json", real / "pool.json")
        await refused()
        real.chmod(0o700)
        await refused()
    finally:
        stranger.end(other)


async def test_an_agent_says_nothing_to_another_user(tmp_path: Path) -> None:
    """Not even where the folder lets others in, by mistake."""
    async with running(request(tmp_path, num_ranks=1)) as pool:
        folder = Path(pool.record.folder)
        agent = folder / "agent.sock"
        denied = await asyncio.to_thread(stranger.said, LISTEN, agent)
        assert denied == "PermissionError", "it cannot even look into the folder"
        parents = [folder, folder.parent]
        modes = [path.stat().st_mode for path in (*parents, agent)]
        try:
            for path in (*parents, agent):
                path.chmod(0o777)
            assert await asyncio.to_thread(stranger.said, LISTEN, agent) in (
                "b''",
                "ConnectionResetError",
                "BrokenPipeError",
            )
        finally:
            for path, mode in zip((*parents, agent), modes, strict=True):
                path.chmod(mode)
        assert len(processes(pool)) > 1


def test_a_hundred_thousand_folders_of_another_user_stall_no_server(
    open_folder: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "stalls"
    (tmp_path / "config.py").write_text(configuration(seen))
    options = f"--config={tmp_path / 'config.py'}"
    server = Server(tmp_path / "home", tmp_path, options, TMPDIR=str(open_folder))
    client = Client(server)
    try:
        first = client.start(num_ranks=1)
        stranger.said(FLOOD, open_folder)
        assert len(os.listdir(open_folder)) > 100_000
        seen.write_text("")  # what came before was the start
        second = client.start(num_ranks=1)
        assert [pool["id"] for pool in client.get("pools")["pools"]] == [first["id"], second["id"]]
        check(seen)
        server.process.kill()
        # The next server finds its pools among all these.
        server = Server(tmp_path / "home", tmp_path, options, TMPDIR=str(open_folder))
        client = Client(server)
        wait_for(lambda: len(client.get("pools")["pools"]) == 2, "the adoption of both")
    finally:
        server.close()
