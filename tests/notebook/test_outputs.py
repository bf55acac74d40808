"""What cells show when they run on ranks: the same with a server and without."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from jupyter_dist_server.client.pool_client import PoolClient

from ..notebook_driver import Notebook
from ..waiting import PATIENCE
from .places import INPUT, pool_folder, wait_until_at

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""


def test_identical_output_appears_once_and_is_marked(ranks: Notebook) -> None:
    result = ranks.ok("%%distributed\nprint('same')\nprint('mine', rank)\nprint('same again')")
    assert result.lines == ["[0-1] same", "[0]   mine 0", "[1]   mine 1", "[0-1] same again"]


def test_namespace_and_environment_are_torchruns(ranks: Notebook) -> None:
    code = """%%distributed
import os
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK ROLE_RANK MASTER_ADDR".split()
print(rank, local_rank, world_size, gpu_id, device, [os.environ[n] for n in names])
print(dist.is_initialized(), dist.get_backend(), int(os.environ["MASTER_PORT"]) > 0)
"""
    assert ranks.ok(code).lines == [
        "[0]   0 0 2 None cpu ['0', '0', '2', '2', '0', '0', '127.0.0.1']",
        "[1]   1 1 2 None cpu ['1', '1', '2', '2', '0', '1', '127.0.0.1']",
        "[0-1] True gloo True",
    ]


def test_collectives_work(ranks: Notebook) -> None:
    code = "%%distributed\nt = torch.ones(2) * (rank + 1)\ndist.all_reduce(t)\nt.tolist()"
    assert ranks.ok(code).lines == ["[0-1] [3.0, 3.0]"]


def test_last_value_per_rank(ranks: Notebook) -> None:
    assert ranks.ok("%%distributed\nrank * 10").lines == ["[0]   0", "[1]   10"]


def test_stderr_stays_stderr(ranks: Notebook) -> None:
    result = ranks.ok("%%distributed\nimport sys\nprint('out')\nprint('err', file=sys.stderr)")
    assert result.lines == ["[0-1] out"]
    assert result.stream("stderr") == "[0-1] err\n"


def test_what_a_stream_of_the_users_passes_on_is_shown_by_the_cell_that_printed_it(
    ranks: Notebook,
) -> None:
    code = """%%distributed
import sys
class Tee:
    def __init__(self, stream):
        self.stream = stream
    def write(self, text):
        self.stream.write(text.upper())
    def flush(self):
        self.stream.flush()
own, sys.stdout = sys.stdout, Tee(sys.stdout)
"""
    ranks.ok(code)
    assert ranks.ok("%%distributed\nprint('one')").lines == ["[0-1] ONE"]
    assert ranks.ok("%%distributed\nprint('two')\nsys.stdout = own").lines == ["[0-1] TWO"]


def test_blank_lines_and_indent_are_kept(ranks: Notebook) -> None:
    result = ranks.ok("%%distributed\nfor w in ['  p', '', '  q']:\n    print(w)")
    assert result.lines == ["[0-1]   p", "[0-1]", "[0-1]   q"]


def test_figure_and_html_appear_once(ranks: Notebook) -> None:
    figure = ranks.ok(
        "%%distributed\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    )
    assert len(figure.mime("image/png")) == 1
    assert figure.mime("text/plain")[0] == "[0-1]"
    html = ranks.ok(
        "%%distributed\nfrom IPython.display import HTML, display\ndisplay(HTML(f'<b>{rank}</b>'))"
    )
    assert sorted(html.mime("text/html")) == ["<b>0</b>", "<b>1</b>"]


def test_display_updates_in_place_per_rank(ranks: Notebook) -> None:
    code = """%%distributed
handle = display({"text/html": f"<i>{rank}</i>"}, raw=True, display_id=True)
handle.update({"text/html": f"<u>{rank}</u>"}, raw=True)
"""
    assert sorted(ranks.ok(code).mime("text/html")) == ["<u>0</u>", "<u>1</u>"]


def test_a_later_cell_updates_a_display_in_place(ranks: Notebook) -> None:
    first = ranks.send("%%distributed\nhandle = display('begun', display_id=True)")
    shown = ranks.follow(first)
    later = ranks.ok("%%distributed\nhandle.update('done %d' % rank)")
    for message in later.messages:
        if message["msg_type"] == "update_display_data":
            shown.add("update_display_data", message["content"])
    assert shown.lines == [] and "'done 0'" in shown.shown and "'done 1'" in shown.shown


def test_magics_shell_commands_and_await_work_on_ranks(ranks: Notebook) -> None:
    result = ranks.ok("%%distributed\n%timeit -n1 -r1 pass\n!echo shell $RANK")
    assert result.text.count("per loop") >= 1
    assert "[0]   shell 0" in result.lines and "[1]   shell 1" in result.lines
    awaited = ranks.ok("%%distributed\nimport asyncio\nawait asyncio.sleep(0)\nprint('awaited')")
    assert awaited.lines == ["[0-1] awaited"]


def test_output_of_c_code_and_subprocesses_belongs_to_the_cell_in_order(ranks: Notebook) -> None:
    code = """%%distributed
import ctypes, os, subprocess
print("python")
os.write(1, b"descriptor\\n")
subprocess.run(["echo", "subprocess"])
_ = ctypes.CDLL(None).puts(b"C")
"""
    assert ranks.ok(code).lines == [
        f"[0-1] {w}" for w in ["python", "descriptor", "subprocess", "C"]
    ]


def test_output_of_c_code_that_holds_the_lock_never_blocks(ranks: Notebook) -> None:
    # PyDLL keeps Python's lock while it writes four times what a pipe would hold.
    code = """%%distributed
import ctypes
line = b"x" * 99 + b"\\n"
ctypes.PyDLL(None).write(2, line * 2600, 260_000)
print("done")
"""
    result = ranks.ok(code)
    assert result.lines == ["[0-1] done"]
    assert result.stream("stderr").count("x" * 99) == 2600


def test_broken_utf8_is_shown(ranks: Notebook) -> None:
    result = ranks.ok('%%distributed\nimport os\nos.write(1, b"a\\xffb \\xc3\\xa9\\n")\nNone')
    assert result.lines == ["[0-1] a\ufffdb é"]


def test_half_a_character_at_the_end_of_a_cell_is_shown_there(ranks: Notebook) -> None:
    assert ranks.ok("%%rank 0\nimport os\nos.write(1, b'\\xe2');").lines == ["[0]   \ufffd"]
    assert ranks.ok("%%rank 0\nos.write(1, b'next\\n');").lines == ["[0]   next"]


def test_lone_surrogates_are_shown_and_stop_nothing(ranks: Notebook) -> None:
    shown = ranks.ok("%%distributed\nprint('a\\ud800b')\ndisplay('c\\udcff')").lines
    assert shown == ["[0-1] a\\ud800b", "[0-1] 'c\\udcff'"]
    assert "ValueError: d\\ud800" in ranks.fails("%%distributed\nraise ValueError('d\\ud800')")


def test_very_many_changes_between_stdout_and_stderr_block_nothing(ranks: Notebook) -> None:
    code = """%%rank 0
import sys
for i in range(5000):
    print(i)
    print(i, file=sys.stderr)
"""
    result = ranks.ok(code)
    # A line whose end comes late is a display, not text of its stream.
    numbers = [int(n) for n in re.findall(r"^(?:\[0\] *)?(\d+)$", result.shown, re.M)]
    assert sorted(numbers) == [i // 2 for i in range(10_000)]


def test_many_lines_from_each_rank_are_all_there_in_order(ranks: Notebook) -> None:
    result = ranks.ok("%%distributed\nfor i in range(5000):\n    print(f'<{rank}:{i}>')")
    for rank in (0, 1):
        mine = [
            line.split()[-1] for line in result.lines if line.split()[-1].startswith(f"<{rank}:")
        ]
        assert mine == [f"<{rank}:{i}>" for i in range(5000)]
    labels = [line for line in result.lines if not line.split()[-1].startswith("<")]
    assert set(labels) == {"[0]", "[1]"}, "much text has its label above it"


def test_progress_bars_are_redrawn_in_place(ranks: Notebook) -> None:
    code = """%%distributed
import time
from tqdm import tqdm
for _ in tqdm(range(40), desc=f"rank {rank}"):
    time.sleep(0.05)
print("after")
"""
    result = ranks.ok(code)
    bars = [d for d in result.mime("text/plain") if "rank 0" in d or "rank 1" in d]
    assert len(bars) == 1, result.shown
    assert bars[0].count("100%") == 2 and bars[0].count("\n") == 1
    assert result.lines == ["[0-1] after"]
    updates = [m for m in result.messages if m["msg_type"] == "update_display_data"]
    assert updates, "the bars were not redrawn while they ran"


def test_clear_output_clears_only_its_own_rank(ranks: Notebook) -> None:
    code = """%%distributed
from IPython.display import clear_output
print("start", rank)
if rank == 1:
    for i in range(3):
        clear_output(wait=True)
        print("step", i)
"""
    assert ranks.ok(code).lines == ["[0]   start 0", "[1]   step 2"]


def test_output_streams_while_the_cell_runs(ranks: Notebook, tmp_path: Path) -> None:
    wait = f"while not os.path.exists({str(tmp_path / 'seen')!r}): time.sleep(0.01)"
    code = f"%%distributed\nimport os, time\nprint('early')\n{wait}\nprint('late')"
    seen = ranks.ok(code, until=lambda r: "early" in r.text, act=(tmp_path / "seen").touch)
    assert seen.lines == ["[0-1] early", "[0-1] late"]


def test_input_asks_with_the_rank_in_the_prompt(ranks: Notebook) -> None:
    result = ranks.ok("%%rank 1\nprint('got', input('name? '))", answers=("bob",))
    assert result.lines == ["[1]   got bob"]


def wait_for_prompt(notebook: Notebook, cell: str) -> None:
    """Return when a cell asks the user."""
    while notebook.client.get_stdin_msg(timeout=PATIENCE)["parent_header"]["msg_id"] != cell:
        pass


def test_what_others_print_is_shown_while_a_prompt_waits(ranks: Notebook, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    code = f"""%%distributed
import os, time
if rank == 0:
    input("go on? ")
while not os.path.exists({str(asked)!r}):
    time.sleep(0.01)
print("later")
"""
    cell = ranks.send(code)
    wait_for_prompt(ranks, cell)
    asked.touch()
    result = ranks.follow(
        cell, until=lambda seen: "later" in seen.shown, act=lambda: ranks.client.input("")
    )
    assert result.status == "ok" and result.said_by("later") == {0, 1}


def test_a_prompt_waits_no_longer_once_its_cell_was_stopped_by_somebody_else(
    ranks: Notebook,
) -> None:
    folder = pool_folder(ranks)
    client = PoolClient(folder)
    cell = ranks.send("%%distributed\ninput('name? ')")
    wait_for_prompt(ranks, cell)
    wait_until_at(folder, {0: INPUT, 1: INPUT})

    async def stop() -> None:
        await client.connect()
        assert await client.stop_all() == []
        await client.close()

    asyncio.run(stop())
    result = ranks.follow(cell)
    assert "Interrupted: ranks 0-1 were waiting for an answer to `input()`" in result.error
    assert ranks.ok("%%rank 1\ninput('name? ')", answers=("bob",)).lines == ["[1]   'bob'"]


def test_what_a_cell_sets_in_its_context_stays(ranks: Notebook) -> None:
    """NumPy's print options and errors are kept there, too."""
    ranks.ok("%%distributed\nimport decimal\ndecimal.getcontext().prec = 5")
    assert ranks.ok("%%distributed\ndecimal.Decimal(1) / 3").lines == ["[0-1] Decimal('0.33333')"]
    ranks.ok("%%distributed\ndecimal.getcontext().prec = 28")


def test_an_end_of_input_is_the_ranks(ranks: Notebook) -> None:
    code = "%%rank 1\ntry:\n    input('name? ')\nexcept EOFError:\n    print('no name')"
    assert ranks.ok(code, answers=("\x04",)).lines == ["[1]   no name"]


def test_variables_stay_in_the_ranks(ranks: Notebook) -> None:
    ranks.ok("%%distributed\nkept = rank + 40")
    assert ranks.ok("'kept' in globals()").mime("text/plain") == ["False"]
    assert ranks.ok("%%distributed\nkept").lines == ["[0]   40", "[1]   41"]
