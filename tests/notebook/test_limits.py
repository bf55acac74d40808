"""Before a limit ends a pool, its notebook is asked; after that, it is told."""

from __future__ import annotations

from ..notebook_driver import Notebook


def test_a_message_asks_before_an_idle_pool_ends(notebook: Notebook) -> None:
    """It stands below the newest cell, and the next one says what has become of the pool."""
    notebook.ok("%dist_init -n 1 --time 2:00:00 --idle-limit 30s")
    status = notebook.ok("%dist_status").text
    assert "(time limit 2:00:00)" in status and "no cell has run for 0:30" in status
    assert "(time limit 3:00:00)" in notebook.ok("%dist_extend 1:00:00").text
    assert notebook.refused("%dist_extend soon") == "bad_time"
    notebook.ok("%%rank 0\n1 + 1")
    below = notebook.send("'the newest'")
    said = ""
    while "idle limit" not in said:
        message = notebook.client.get_iopub_msg(timeout=120)
        if message["msg_type"] == "stream":
            assert message["parent_header"]["msg_id"] == below
            said += message["content"]["text"]
    assert "will be stopped at" in said and "%dist_extend" in said
    failed = ""
    while "its idle limit, so it was stopped" not in failed:
        failed = notebook.run("%dist_interrupt").error
