"""Stop ends every cell, whatever its ranks wait for, and leaves a pool that works."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading

import IPython
import pytest

from ..notebook_driver import Notebook
from .places import IDLE, INPUT, pid_of, pool_folder, stop_at, wait_until_at

PLAIN_ONLY = True
"""The server has no part in it."""


@pytest.fixture
def three(notebook: Notebook) -> Notebook:
    """Return the notebook with three ranks that know `kept`."""
    if notebook.run("%dist_status").text.count(" idle for ") != 3:
        notebook.run("%dist_shutdown")  # which keeps torch imported
        notebook.ok("%dist_init -n 3")
        notebook.ok("%%distributed\nkept = rank * 10")
    return notebook


def is_whole(notebook: Notebook) -> bool:
    """Check that variables are there and that collectives work, in both senses of the word."""
    cell = "t = torch.ones(1)\ndist.all_reduce(t)\nprint(int(t), kept == rank * 10)"
    return notebook.ok(f"%%distributed\n{cell}").lines == ["[0-2] 3 True"]


@pytest.mark.parametrize(
    ("name", "waiting"),
    [("barrier", "dist.barrier()"), ("all_reduce", "dist.all_reduce(torch.ones(1))")],
)
def test_a_collective_that_never_completes(three: Notebook, name: str, waiting: str) -> None:
    places = {0: name, 1: IDLE, 2: name}
    result = stop_at(three, f"%%distributed\nprint('in')\nif rank != 1:\n    {waiting}", places)
    assert result.error == (
        f"Interrupted: ranks 0,2 were waiting in {name} (line 4); all variables are kept, but "
        "create DDP models and groups from `new_group` again."
    )
    told, folded = result.shown.split("Details:\n")
    assert told.endswith(result.error) and "KeyboardInterrupt" not in told
    assert "Ranks 0,2 stopped; their variables are kept. Rank 1 finished" in folded
    assert "The process group was re-created; create DDP models" in folded
    assert "[0,2]\n" in folded and waiting in folded
    (rich,) = result.mime("text/html")
    assert rich.startswith("<details><summary>Details</summary><pre>Ranks 0,2 were waiting in")
    assert "c10d" not in result.shown and "gloo" not in result.shown  # its words mean a crash
    assert is_whole(three)


def test_some_wait_in_a_collective_and_some_in_python(three: Notebook) -> None:
    result = stop_at(
        three,
        "%%distributed\nprint('in')\nif rank == 1:\n    import time\n    time.sleep(600)\n"
        "dist.barrier()",
        {0: "barrier", 1: 5, 2: "barrier"},
    )
    assert "ranks 0,2 were waiting in barrier (line 6), rank 1 in Python code (line 5);" in (
        result.error
    )
    assert is_whole(three)


def test_ranks_in_different_collectives(three: Notebook) -> None:
    cell = "%%distributed\nprint('in')\ndist.recv(torch.ones(1), (rank + 1) % 3)"
    everywhere = dict.fromkeys(range(3), "recv")
    assert "ranks 0-2 were waiting in recv (line 3);" in stop_at(three, cell, everywhere).error
    assert is_whole(three)


def test_a_group_of_the_users_own(three: Notebook) -> None:
    cell = "%%distributed\nown = dist.new_group([0, 1])\nprint('in')\n"
    stop_at(three, cell + "if rank == 0:\n    dist.barrier(own)", {0: "barrier", 1: IDLE, 2: IDLE})
    assert is_whole(three)
    stop_at(three, "%%rank 0\nprint('in')\ndist.new_group([0, 2])", {0: "new_group"})
    assert is_whole(three)


def test_connections_of_the_users_own_are_left_alone(three: Notebook) -> None:
    three.ok(
        "%%distributed\nimport socket\naddress = [None]\n"
        "if rank == 0:\n"
        "    listener = socket.create_server(('127.0.0.1', 0))\n"
        "    address = [listener.getsockname()]\n"
        "dist.broadcast_object_list(address, 0)\n"
        "if rank == 1:\n    connection = socket.create_connection(address[0])\n"
        "if rank == 0:\n    connection, _ = listener.accept()\n"
    )
    stop_at(three, "%%rank 0\nprint('in')\ndist.barrier()", {0: "barrier"})
    assert is_whole(three)
    three.ok("%%rank 0\nconnection.sendall(b'hello')")
    assert three.ok("%%rank 1\nconnection.recv(5)").lines == ["[1]   b'hello'"]


def test_python_code_that_catches_the_first_interrupt(three: Notebook) -> None:
    cell = (
        "%%distributed\nimport time\ntry:\n    print('in')\n    time.sleep(600)\n"
        "except KeyboardInterrupt:\n    time.sleep(600)"
    )
    assert "Ranks 0-2 stopped" in stop_at(three, cell, dict.fromkeys(range(3), 5)).shown
    assert is_whole(three)


IN_A_TASK = (
    "async def work():\n    while True: pass\nawait asyncio.gather(work(), asyncio.sleep(600))"
)


@pytest.mark.parametrize("work", ["await asyncio.sleep(600)", "while True: pass", IN_A_TASK])
def test_a_cell_that_awaits(three: Notebook, work: str) -> None:
    cell = f"%%distributed\nimport asyncio\nawait asyncio.sleep(0)\nprint('in')\n{work}"
    assert "Ranks 0-2 stopped" in stop_at(three, cell, dict.fromkeys(range(3))).shown
    assert is_whole(three)


def test_an_answer_that_nobody_gives(three: Notebook) -> None:
    cell = "%%distributed\nprint('in')\ninput('name? ')"
    result = stop_at(three, cell, dict.fromkeys(range(3), INPUT))
    assert "ranks 0-2 were waiting for an answer to `input()` (line 3);" in result.error
    details = result.shown.split("Details:\n")[1]
    assert details.count("Cell In[") == 1 and "input('name? ')" in details
    assert "ipykernel" not in details and "zmq" not in details
    assert is_whole(three)


def test_an_answer_that_nobody_gives_while_others_print_without_pause(three: Notebook) -> None:
    loop = "import time\n    while True:\n        print('more')\n        time.sleep(0.001)"
    cell = f"%%distributed\nprint('in')\nif rank == 0:\n    input('name? ')\nelse:\n    {loop}"
    result = stop_at(three, cell, {0: INPUT, 1: None, 2: None})
    assert "rank 0 was waiting for an answer to `input()` (line 4)" in result.error
    assert is_whole(three)


def test_a_cell_that_cannot_be_shown_does_not_go_on_unseen(three: Notebook) -> None:
    three.ok("""import sys
class Full:
    def write(self, text):
        raise OSError("no space is left")
    def flush(self):
        pass
own, sys.stdout = sys.stdout, Full()
""")
    error = three.fails("""%%distributed
import time
ended = "never"
try:
    print("shown")
    time.sleep(60)
    ended = "by itself"
except KeyboardInterrupt:
    ended = "stopped"
    raise
""")
    assert "no space is left" in error
    three.ok("sys.stdout = own")
    assert three.ok("%%distributed\nended").lines == ["[0-2] 'stopped'"]


def test_a_second_press_goes_on_at_once(three: Notebook) -> None:
    limits = "patience.cleanup, patience.instant"
    three.ok("from jupyter_dist_server.common.patience import patience")
    three.ok(f"{limits} = 3600, 3600")  # nothing else goes on then
    folder = pool_folder(three)

    def press_twice() -> None:
        wait_until_at(folder, {1: "barrier"})
        three.interrupt()
        threading.Timer(5, three.interrupt).start()

    three.fails(
        "%%distributed\nif rank == 1:\n    print('in')\n    dist.barrier()",
        until=lambda r: "in" in r.text,
        act=press_twice,
    )
    three.ok(f"del {limits}")
    assert is_whole(three)


def test_who_was_in_a_collective_is_freed_without_waiting_for_python_code(three: Notebook) -> None:
    three.ok("from jupyter_dist_server.common.patience import patience\npatience.cleanup = 3600")
    waiting = {1: "barrier", 2: "barrier"}
    stop_at(three, "%%distributed\nprint('in')\nif rank:\n    dist.barrier()", waiting)
    three.ok("del patience.cleanup")
    assert is_whole(three)


CHAINED = "try:\n        time.sleep(600)\n    finally:\n        raise ValueError('after it')"
PRINTED = "try:\n        time.sleep(600)\n    except KeyboardInterrupt:\n        print_exc()"
OURS = re.compile("jupyter_dist_server|default_int_handler|_ignore|signal.signal")


@pytest.mark.parametrize("work", ["time.sleep(600)", CHAINED, PRINTED])
@pytest.mark.parametrize("how", ["cell", "await", "script"])
def test_no_frame_of_ours_is_in_a_traceback(three: Notebook, how: str, work: str) -> None:
    code = f"import time\nfrom traceback import print_exc\ndef f():\n    {work}\nprint('in')\nf()\n"
    cell = f"%%distributed\n{code}"
    if how == "await":
        cell = f"%%distributed\nimport asyncio\nawait asyncio.sleep(0)\n{code}"
    if how == "script":
        three.ok(f"open('stopped.py', 'w').write({code!r})")
        cell = "%dist_run stopped.py"
    result = stop_at(three, cell, dict.fromkeys(range(3)))
    assert "time.sleep(600)" in result.shown and "KeyboardInterrupt" in result.shown
    if work is PRINTED and how == "await":
        return  # such a cell has a handler of ours, and its own code shows that
    assert not OURS.search(result.shown), result.shown


DEEP = """%%distributed
import functools, sys, time
leaf = torch.nn.Identity()
leaf.forward = functools.partial(time.sleep)
for _ in range(20):
    leaf = torch.nn.Sequential(leaf)
print('in')
leaf(600)
"""


def test_a_traceback_deep_in_a_library_is_short(three: Notebook) -> None:
    """To render hundreds of frames would take longer than Stop waits."""
    three.ok("from jupyter_dist_server.common.patience import patience\npatience.cleanup = 60")
    result = stop_at(three, DEEP, dict.fromkeys(range(3), 8))
    three.ok("del patience.cleanup")
    assert result.error.endswith("were in Python code (line 8); all variables are kept.")
    assert "----> 8 leaf(600)" in result.shown
    tracebacks = result.shown.count("KeyboardInterrupt  ")
    assert len(re.findall(r"\n-+> \d+ ", result.shown)) == 8 * tracebacks  # the cell's, and 7
    if sys.version_info >= (3, 11) and IPython.version_info >= (8,):
        assert "frames of libraries are left out above the last 3." in result.shown
    assert is_whole(three)


SLOW = """%%distributed
import time
class Slow(KeyboardInterrupt):
    def _render_traceback_(self):
        time.sleep(4)
        return ["rendered"]
print('in')
try:
    time.sleep(600)
except KeyboardInterrupt:
    raise Slow
"""


def test_a_rank_that_shows_its_error_is_waited_for(three: Notebook) -> None:
    """It is not stuck: on a busy machine, long tracebacks take seconds."""
    three.ok("from jupyter_dist_server.common.patience import patience\npatience.cleanup = 1")
    result = stop_at(three, SLOW, dict.fromkeys(range(3), 9))
    three.ok("del patience.cleanup")
    assert "[0-2] failed:\nrendered\n" in result.error
    assert "Ranks 0-2 failed with Slow." in result.error
    assert is_whole(three)


def test_a_failure_on_one_rank_while_others_wait_for_it(three: Notebook) -> None:
    cell = "%%distributed\nif rank == 1:\n    raise ValueError('bad')\ndist.barrier()"
    error = stop_at(three, cell, {0: "barrier", 2: "barrier"}, "[1] failed (ValueError: bad)").error
    assert "Rank 1 failed with ValueError: bad." in error
    assert is_whole(three)


def test_a_collective_that_only_some_have_done_does_not_spoil_the_next(three: Notebook) -> None:
    cell = "if rank == 0:\n    dist.all_reduce(torch.ones(1), async_op=True)\nraise ValueError"
    assert "The process group" in three.fails(f"%%distributed\n{cell}")
    assert is_whole(three)


def test_a_blocking_c_call(three: Notebook) -> None:
    cell = (
        "%%distributed\nimport ctypes\nmutex = ctypes.create_string_buffer(64)\n"
        "dist.barrier()\nif rank == 1:\n"
        "    [ctypes.{how}(None).pthread_mutex_lock(mutex) for _ in '12']\n"
        "print('in')\ndist.barrier()"
    )
    others = {0: "barrier", 2: "barrier"}
    for how, where, places in (
        ("CDLL", "rank 1 in Python code (line 6)", others | {1: 6}),
        ("PyDLL", "rank 1 in C code that holds the GIL", others),
    ):
        error = stop_at(three, cell.replace("{how}", how), places, locked=1).error
        assert "Ranks 0,2 were waiting in barrier (line 8)" in error and where in error
        assert re.search(r"Rank 1 did not stop[,:] stuck in C code(, or .*)?\.", error)
        assert "Ranks 0,2 stopped" in error
        assert "%dist_restart --ranks 1. Its variables are then lost." in error
        assert error.rstrip().endswith("Collectives work again once it is replaced or idle.")
        said = three.ok("%dist_interrupt").text
        assert "Rank 1 did not stop. Replace it with %dist_restart --ranks 1: its " in said
        assert sorted(three.ok("%%rank [0,2]\nkept").lines) == ["[0]   0", "[2]   20"]
        assert three.ok("%dist_restart --ranks 1").lines == []
        three.ok("%%rank 1\nkept = 10")
        assert is_whole(three)


def test_a_profile_is_not_waited_for_that_a_stuck_rank_cannot_give(three: Notebook) -> None:
    cell = (
        "%%distributed --profile\nimport ctypes\nmutex = ctypes.create_string_buffer(64)\n"
        "dist.barrier()\nprint('in')\nif rank == 1:\n"
        "    [ctypes.PyDLL(None).pthread_mutex_lock(mutex) for _ in '12']"
    )
    result = stop_at(three, cell, {0: IDLE, 2: IDLE}, locked=1)
    assert "Rank 1 did not stop" in result.error
    assert "No profile of rank 1, which did not respond." in result.shown
    assert three.ok("%dist_restart --ranks 1").lines == []
    three.ok("%%rank 1\nkept = 10")
    assert is_whole(three)


@pytest.mark.parametrize("rank", [1, 0])
def test_a_rank_that_dies_ends_the_collectives_that_wait_for_it(three: Notebook, rank: int) -> None:
    pid = pid_of(three, rank)
    result = three.run(
        f"%%distributed\nprint('in')\nif rank == {rank}:\n    import time\n    time.sleep(600)\n"
        "dist.barrier()",
        until=lambda r: "in" in r.text,
        act=lambda: os.kill(pid, signal.SIGKILL),
    )
    assert "failed with an unusable process group." in result.error
    assert f"Rank {rank} died:" in result.error
    assert f"%dist_restart --ranks {rank}." in result.error
    others = [other for other in range(3) if other != rank]
    expected = [f"[{o}]   {o * 10}" for o in others]
    assert sorted(three.ok(f"%%rank {others}\nkept").lines) == expected  # both say it at one time
    error = three.fails(f"%%rank {others}\ndist.barrier()")
    assert f"%dist_restart --ranks {rank}." in error
    three.ok(f"%dist_restart --ranks {rank}")
    three.ok(f"%%rank {rank}\nkept = rank * 10")
    assert is_whole(three)
