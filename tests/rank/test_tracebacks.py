"""Tracebacks on ranks are as IPython's own, and what the first one needs is there before."""

from __future__ import annotations

import io
import subprocess
import sys
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.rank.cells.tracebacks import leave_out_ours, shorten

from ..pool_driver import client_of, linux, request, running, text_of

RENDER = """
import sys
from pathlib import Path
from IPython.core.ultratb import FormattedTB
from pygments.lexers import PythonLexer
from pygments.token import Text

def render():
    try:
        Path("/nowhere at all").read_text()
    except OSError as error:
        said = FormattedTB(mode="Context").structured_traceback(OSError, error, error.__traceback__)
        return "\\n".join(said)

first = render()
from jupyter_dist_server.rank.cells.tracebacks import warm_up
warm_up()
assert render() == first
PythonLexer()  # which IPython 7 does not use
class Own(PythonLexer):
    tokens = {"root": [("[^\\n]+", Text.Own), ("\\n", Text)]}
Own()
class Inherited(Own):
    pass
Inherited()
assert Inherited._tokens is Own._tokens is not PythonLexer._tokens
class Same(PythonLexer):
    pass
Same()
assert Same._tokens is PythonLexer._tokens
"""


def test_sharing_lexers_changes_no_traceback(tmp_path: Path) -> None:
    program = tmp_path / "render.py"
    program.write_text(RENDER)
    subprocess.run([sys.executable, program], check=True)


async def test_ranks_have_what_a_first_traceback_needs(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        code = "import sys, inspect\nprint('stack_data' in sys.modules, len(inspect.modulesbyfile))"
        said = io.StringIO(await text_of(client, code)).readline().split()
        assert said[0] == str(find_spec("stack_data") is not None) and int(said[1]) > 100
        code = "import inspect, sys\nprint(inspect.getmodule(sys._getframe()).__name__)"
        assert await text_of(client, code) == "__main__\n"


@linux
async def test_idle_ranks_copy_the_memory_that_a_traceback_changes(tmp_path: Path) -> None:
    """At the first Stop, all ranks would do so at the same moment."""
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        count = (
            "import asyncio, resource\n"
            "from jupyter_dist_server.rank.cells.tracebacks import render_one\n"
            "await asyncio.sleep(1)  # its event loop is that of the rank\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
            "render_one()\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)"
        )
        assert int(await text_of(client, count)) < 100  # pages


async def test_an_error_is_rendered_once(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        count = (
            "tb, renders = get_ipython().InteractiveTB, []\nrender = tb.structured_traceback\n"
            "def counted(*given, **named):\n    renders.append(1)\n"
            "    return render(*given, **named)\n"
            "tb.structured_traceback = counted"
        )
        await text_of(client, count)
        reply = (await client.execute("1 / 0", [0], lambda *_: None))[0]
        assert "ZeroDivisionError" in "".join(reply.content["traceback"])
        assert await text_of(client, "print(len(renders))") == "1\n"


async def test_cells_run_in_a_deleted_folder(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        code = "import os, tempfile\nos.chdir(tempfile.mkdtemp())\nos.rmdir(os.getcwd())"
        await text_of(client, code)
        assert await text_of(client, "print('here')") == "here\n"


def test_frames_of_a_library_in_another_environment_are_left_out() -> None:
    space: dict[str, Any] = {}
    source = "def deep(n):\n    return deep(n - 1) if n else 1 / 0"
    exec(compile(source, "/opt/base/lib/python3.12/site-packages/some.py", "exec"), space)
    with pytest.raises(ZeroDivisionError) as raised:
        space["deep"](20)
    shorten(raised.value)
    assert len(traceback.extract_tb(raised.value.__traceback__)) == 1 + 4 + 3


def test_frames_of_ours_are_not_shown() -> None:
    """An interrupt ends at the user's last line; another error keeps what the library did."""

    def module(name: str, file: str, source: str, **names: Any) -> dict[str, Any]:
        space = {"__name__": name, **names}
        exec(compile(source, file, "exec"), space)
        return space

    installed = "/opt/lib/python3.12/site-packages/zmq.py"
    for error in (KeyboardInterrupt, OSError):
        send = module("zmq", installed, "def send():\n    raise error", error=error)["send"]
        ours = module("jupyter_dist_server.x", "/x.py", "def call(f):\n    f()")["call"]
        users = module("__main__", "<Cell In[1]>", "def users():\n    call(send)")
        users.update(call=ours, send=send)
        with pytest.raises(error) as raised:
            ours(users["users"])
        leave_out_ours(raised.value, ())
        names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
        assert names[1:] == (["users"] if error is KeyboardInterrupt else ["users", "send"])
