"""A rank that starts on a busy machine answers what it is asked from the first moment on."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client import BlockingKernelClient

from jupyter_dist_server.common.pool_folder import new_key, rank_connection

from ..releases import needs_subshells
from ..waiting import PATIENCE

SLOW_RANK = """
import os, sys
from ipykernel.subshell_manager import SubshellManager
from jupyter_dist_server.rank.kernel.kernel_app import RankApp

make = SubshellManager.__init__
test = os.fdopen(os.dup(1), "w")  # the rank takes what is printed for itself

def make_slowly(*arguments):
    print("starting", file=test, flush=True)
    sys.__stdin__.readline()
    make(*arguments)

SubshellManager.__init__ = make_slowly
app = RankApp.instance(connection_file=sys.argv[1])
app.initialize([])
app.start()
"""


@needs_subshells
def test_a_request_that_comes_during_the_start_is_answered(tmp_path: Path) -> None:
    """Subshells are managed last of all; what came before had no reply, and its sender waited."""
    connection = tmp_path / "rank-0.json"
    connection.write_text(json.dumps(rank_connection(tmp_path, 0, new_key())))
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_RANK, str(connection)],
        env=os.environ | {"RANK": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as rank:
        assert rank.stdin and rank.stdout
        client = BlockingKernelClient(connection_file=str(connection))
        try:
            assert rank.stdout.readline() == "starting\n"
            client.load_connection_file()
            client.control_channel.start()
            client.control_channel.send(client.session.msg("list_subshell_request", {}))
            with pytest.raises(queue.Empty):
                client.get_control_msg(timeout=0.5)
            rank.stdin.write("go on\n")
            rank.stdin.flush()
            reply = client.get_control_msg(timeout=PATIENCE)
            assert reply["content"] == {"status": "ok", "subshell_id": []}
        finally:
            client.stop_channels()
            rank.kill()
