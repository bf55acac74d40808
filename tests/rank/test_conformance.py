"""A rank is a Jupyter kernel: the public suite of kernel tests passes against it."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import jupyter_kernel_test
from jupyter_client import BlockingKernelClient
from jupyter_kernel_test import ensure_sync
from jupyter_kernel_test.msgspec_v5 import validate_message

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.client.ranks.subshells import subshell_of
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.notebook.loop_thread import LoopThread
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_manager import PoolManager

from ..releases import needs_subshells
from ..waiting import PATIENCE


async def start(manager: PoolManager, folder: Path) -> Pool:
    """Start a pool of two ranks."""
    pool = await manager.create(PoolRequest(num_ranks=2, cwd=str(folder)))
    while pool.record.state in (PoolState.PENDING, PoolState.CONFIGURING):
        await pool.changed_since(pool.record.version, 60)
    assert pool.record.state is PoolState.RUNNING, pool.record.reason
    return pool


async def subshells(folder: Path) -> set[str]:
    """Return the ids of rank 0's subshell, as two clients know it."""
    clients = [PoolClient(folder) for _ in range(2)]
    found = set()
    for client in clients:
        await client.connect()
        found.add(await subshell_of(client, 0))
        await client.close()
    return found


async def run_cell(folder: Path, code: str) -> None:
    """Run the seventh cell of some notebook on all ranks."""
    client = PoolClient(folder)
    await client.connect()
    await client.execute(code, [0, 1], lambda *_: None, execution_count=7)
    await client.close()


def _heard(message: dict[str, Any]) -> tuple[str, str | None, str | None]:
    asked = message["parent_header"].get("msg_id")
    return message["msg_type"], asked, message["content"].get("execution_state")


class Rank:
    """Stands where the suite expects a kernel of its own."""

    loop: LoopThread
    manager: PoolManager
    pool_folder: Path
    kc: BlockingKernelClient

    @classmethod
    def setUpClass(cls) -> None:
        """Start a pool, and take its last rank for the kernel."""
        cls.folder = tempfile.TemporaryDirectory()
        cls.loop, cls.manager = LoopThread(), PoolManager()
        pool = cls.loop.run(start(cls.manager, Path(cls.folder.name)))
        cls.pool_folder = Path(pool.record.folder)
        connection = cls.pool_folder / "rank-1.json"
        cls.kc = BlockingKernelClient(connection_file=str(connection))
        cls.kc.load_connection_file()
        cls.begin()

    @classmethod
    def begin(cls) -> None:
        """Wait until the rank answers."""
        cls.kc.start_channels()
        cls.kc.wait_for_ready(timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls) -> None:
        """Stop the pool."""
        cls.kc.stop_channels()
        cls.loop.run(cls.manager.stop_all())
        cls.folder.cleanup()


class TestRank(Rank, jupyter_kernel_test.KernelTests):
    """The suite, with what it needs to know of Python."""

    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples: ClassVar[list[dict[str, Any]]] = [
        {"text": "zi", "matches": {"zip"}},
        {"text": "world_si", "matches": {"world_size"}},
    ]
    complete_code_samples: ClassVar[list[str]] = ["1", "print('hello, world')", "f'''a\n'''\n"]
    incomplete_code_samples: ClassVar[list[str]] = ["print('''hello", "def f(x):\n  x*2"]
    invalid_code_samples: ClassVar[list[str]] = ["import = 7q"]
    code_page_something = "zip?"
    code_generate_error = "raise ValueError('no')"
    code_execute_result: ClassVar[list[dict[str, str]]] = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
        {"code": "rank", "result": "1"},
    ]
    code_display_data: ClassVar[list[dict[str, str]]] = [
        {"code": "from IPython.display import HTML, display; display(HTML('<b>test</b>'))"}
        | {"mime": "text/html"},
        {"code": "from IPython.display import Math, display; display(Math('\\\\frac{1}{2}'))"}
        | {"mime": "text/latex"},
    ]
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"

    def flush_channels(self) -> None:
        """Read what is left; the suite takes a tenth of a second of silence for the end."""
        asked = self.kc.kernel_info()
        while self.kc.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"] != asked:
            pass
        idle = ("status", asked, "idle")
        while _heard(message := self.kc.get_iopub_msg(timeout=PATIENCE)) != idle:
            if message["msg_type"] != "iopub_welcome":  # which the suite does not know
                validate_message(message)

    def execute_helper(self, code: str, **options: Any) -> tuple[dict[str, Any], list[Any]]:
        """Run a cell; the suite waits a tenth of a second for what follows its reply."""
        iopub = self.kc.iopub_channel
        get = ensure_sync(iopub.get_msg)  # before jupyter_client 8, the channels are asyncio's
        with mock.patch.object(iopub, "get_msg", lambda **_: get(timeout=PATIENCE)):
            return super().execute_helper(code, **{"timeout": PATIENCE, **options})

    def test_history_is_answered(self) -> None:
        """A rank keeps no history, and says so in a valid reply."""
        for options in (
            {"hist_access_type": "tail", "n": 3},
            {"hist_access_type": "search", "pattern": "*", "unique": True},
            {"hist_access_type": "range", "session": 0, "start": 0, "stop": 2, "output": True},
        ):
            asked = self.kc.history(raw=True, **options)
            reply = self.get_non_kernel_info_reply(timeout=PATIENCE)
            validate_message(reply, "history_reply", asked)
            assert reply and reply["content"]["status"] == "ok"

    @needs_subshells
    def test_subshells_answer_while_a_cell_runs(self) -> None:
        """The control channel makes a subshell; it answers beside the main shell."""
        self.flush_channels()
        self.kc.control_channel.send(self.kc.session.msg("create_subshell_request", {}))
        subshell = self.kc.get_control_msg(timeout=PATIENCE)["content"]["subshell_id"]
        self.kc.execute("import threading; go = threading.Event()")
        self.kc.get_shell_msg(timeout=PATIENCE)
        running = self.kc.execute("go.wait()")
        message = self.kc.session.msg("execute_request", {"code": "go.set()", "silent": False})
        message["header"]["subshell_id"] = subshell
        self.kc.shell_channel.send(message)
        replies = [self.kc.get_shell_msg(timeout=PATIENCE) for _ in range(2)]
        assert {reply["content"]["status"] for reply in replies} == {"ok"}
        parents = {reply["parent_header"]["msg_id"] for reply in replies}
        assert parents == {running, message["msg_id"]}

    def test_cells_of_others_look_like_cells(self) -> None:
        """Those by our own channel, too: each message on iopub is one of the protocol's."""
        self.flush_channels()
        self.loop.run(run_cell(self.pool_folder, "print('here')"))
        kinds: list[tuple[str, str | None]] = []
        while kinds[-1:] != [("status", "idle")]:
            message = self.kc.get_iopub_msg(timeout=PATIENCE)
            # The suite does not know the one, and the other is on its way to who asked.
            if message["msg_type"] not in ("iopub_welcome", "execute_reply"):
                validate_message(message)
            if message["parent_header"].get("msg_type") == "dist_cell_request":
                kinds.append((message["msg_type"], message["content"].get("execution_state")))
        assert kinds[0] == ("status", "busy")
        assert ("stream", None) in kinds


class TestClients(Rank, jupyter_kernel_test.IopubWelcomeTests):
    """A client learns when it will miss nothing any more; it would also hear that of others."""

    support_iopub_welcome = True

    @classmethod
    def begin(cls) -> None:
        """Leave the first message to the test."""


class TestSubshells(Rank, unittest.TestCase):
    """What clients of this package have in common."""

    @needs_subshells
    def test_clients_share_a_subshell(self) -> None:
        """Or every kernel that attaches would leave a thread in each rank."""
        (subshell,) = self.loop.run(subshells(self.pool_folder))
        assert subshell
