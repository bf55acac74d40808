"""`%dist_run`: scripts on the ranks of a running pool, as torchrun would run them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..notebook_driver import Notebook
from .places import stop_at

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

TRAIN = """import argparse
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import helper


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--name", default="")
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    total = torch.full((1,), dist.get_rank() + 1.0)
    dist.all_reduce(total)
    print(sys.argv[0], arguments.lr, arguments.name, total.item(), helper.WORD)
    print(sys.path[0] == str(Path(__file__).parent), "world_size" in globals())
    print(os.environ["RANK"], os.environ["LOCAL_RANK"], os.environ["WORLD_SIZE"])
    os.environ["LEFT_BEHIND"] = os.environ["MASTER_PORT"] = "1"
    dist.destroy_process_group()
    os.chdir("/")


if __name__ == "__main__":
    main()
"""
FAILING = """def fails():
    raise ValueError("no")


if __name__ == "__main__":
    fails()
"""
PICKLES = """import multiprocessing
import pickle


class Kept:
    def __init__(self, value):
        self.value = value


def double(kept):
    return Kept(kept.value * 2)


if __name__ == "__main__":
    print(pickle.loads(pickle.dumps(Kept(3))).value)
    for method in ("spawn", "fork"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(double, [Kept(4)])[0].value)
"""
LEAVES_TRACES = """import logging
import multiprocessing
import signal
import sys
import warnings


class Tee:
    def __init__(self, stream, file):
        self.stream, self.file = stream, file

    def write(self, text):
        self.stream.write(text)
        self.file.write(text)

    def flush(self):
        self.file.flush()


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    warnings.simplefilter("error")
    logging.basicConfig(level=logging.INFO, format=sys.argv[1] + " %(message)s", stream=sys.stdout)
    log = logging.getLogger("train")
    log.addHandler(logging.StreamHandler(sys.stdout))
    with open(f"out-{sys.argv[1]}", "w") as file:
        sys.stdout = Tee(sys.stdout, file)
        print("teed")
        log.info("hello")
"""


@pytest.fixture
def folder(ranks: Notebook, tmp_path: Path) -> Path:
    """Return a folder that is the notebook's."""
    ranks.ok(f"%cd -q {tmp_path}")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_a_script_runs_as_under_torchrun_twice_in_a_row(ranks: Notebook, folder: Path) -> None:
    write(folder / "a folder/train.py", TRAIN)
    write(folder / "a folder/helper.py", "WORD = 'first'\n")
    command = "%dist_run 'a folder/train.py' --lr 0.5 --name \"a # b\"  # run it"
    for word in ("first", "second, edited"):
        write(folder / "a folder/helper.py", f"WORD = '{word}'\n")
        assert ranks.ok(command).lines == [
            f"[0-1] a folder/train.py 0.5 a # b 3.0 {word}",
            "[0-1] True False",
            "[0]   0 0 2",
            "[1]   1 1 2",
        ]
    shared = ranks.ok("%%distributed\nimport os, sys\nstr([*os.environ, sys.argv, sys.path])").shown
    assert ranks.ok("%sync").lines  # the script has put its group away, not the ranks'
    assert "PATH" in shared and "LEFT_BEHIND" not in shared and "a folder" not in shared
    assert ranks.ok("%%distributed\n'main' in globals(), dist.is_initialized()").lines == [
        "[0-1] (False, True)"
    ]
    assert ranks.ok("%%distributed\nos.getcwd() == '/'").lines == ["[0-1] False"]


def test_a_script_leaves_nothing_behind(ranks: Notebook, folder: Path) -> None:
    """Its log file is closed when it ends: to print by way of it would fail for ever."""
    write(folder / "leaves.py", LEAVES_TRACES)
    look = """%%distributed
import logging, multiprocessing, signal, sys, warnings
print(type(sys.stdout).__name__, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
warnings.warn("still a warning")
logging.getLogger().handlers, logging.getLogger("train").handlers, logging.getLogger().level
"""
    before = ranks.ok(look).lines
    for word in ("first", "second"):
        assert ranks.ok(f"%dist_run leaves.py {word}").lines == [
            "[0-1] teed",
            "[0-1] hello",
            f"[0-1] {word} hello",
        ]
    after = ranks.ok(look)
    assert after.lines == before and "still a warning" in after.stream("stderr")
    assert ranks.ok("%%distributed\nmultiprocessing.get_start_method(allow_none=True)").lines == []


def test_a_script_runs_in_the_notebooks_folder(ranks: Notebook, folder: Path) -> None:
    """As torchrun would: also if the notebook has changed its folder since the ranks began."""
    where = "import os\nprint(os.path.basename(os.getcwd()))\n"
    write(folder / "inner/where.py", where)
    write(folder / "inner/package/__init__.py", "")
    write(folder / "inner/package/where.py", where)
    own = ranks.ok("%%distributed\nimport os\nos.getcwd()").lines
    ranks.ok(f"%cd -q {folder / 'inner'}")
    for script in ("where.py", "-m package.where"):
        assert ranks.ok(f"%dist_run {script}").lines == ["[0-1] inner"]
    assert ranks.ok("%%distributed\nos.getcwd()").lines == own


def test_each_script_has_the_modules_of_its_own_folder(ranks: Notebook, folder: Path) -> None:
    for name in ("one", "two"):
        write(folder / name / "same.py", f"WORD = '{name}'\n")
        write(folder / name / "script.py", "import same\nprint(same.WORD)\n")
    for name in ("one", "two", "one"):
        assert ranks.ok(f"%dist_run {name}/script.py").lines == [f"[0-1] {name}"]


def test_some_ranks_and_a_module(ranks: Notebook, folder: Path) -> None:
    ranks.ok(f"%%distributed\nimport os\nbefore = os.getcwd()\nos.chdir({str(folder)!r})")
    write(folder / "package/__init__.py", "")
    write(folder / "package/near.py", "WORD = 'near'\n")
    say = "import sys\nfrom .near import WORD\nprint(__name__, WORD, sys.argv[1:], __spec__.name)\n"
    write(folder / "package/tool.py", say)
    write(folder / "package/__main__.py", say)
    shown = ranks.ok("%dist_run --ranks 1 -m package.tool -m x --ranks 0").lines
    assert shown == ["[1]   __main__ near ['-m', 'x', '--ranks', '0'] package.tool"]
    shown = ranks.ok("%dist_run -m package").lines
    assert shown == ["[0-1] __main__ near [] package.__main__"]
    assert "No module named package.none" in ranks.fails("%dist_run -m package.none")
    write(folder / "package/only/__init__.py", "")
    error = ranks.fails("%dist_run -m package.only")
    assert "'package.only' is a package and cannot be directly executed" in error
    ranks.ok("%%distributed\nos.chdir(before)")


def test_a_traceback_begins_in_the_script(ranks: Notebook, folder: Path) -> None:
    write(folder / "failing.py", FAILING)
    write(folder / "wrong.py", "x = 1\nx ==== 2\n")
    error = ranks.fails("%dist_run failing.py")
    lines = re.findall(r"^-+> (\d+)", error, re.MULTILINE)
    assert lines == ["6", "2"] and "----> 2     raise ValueError" in error
    assert error.count("failing.py") == 2
    assert "Cell In" not in error and "jupyter_dist" not in error and "hidden" not in error
    assert error.endswith("Ranks 0-1 failed with ValueError: no.")
    error = ranks.fails("%dist_run wrong.py")
    assert "wrong.py" in error and "line 2" in error and "x ==== 2" in error
    assert "Cell In" not in error and "jupyter_dist" not in error
    assert "Ranks 0-1 failed with SyntaxError: invalid syntax" in error
    write(folder / "failing.py", "# edited\n" + FAILING)
    assert "----> 3     raise ValueError" in ranks.fails("%dist_run failing.py")


def test_what_is_kept_with_i(ranks: Notebook, folder: Path) -> None:
    write(folder / "defines.py", "class Mine:\n    pass\n\n\nmine = Mine()\nseen = world_size\n")
    assert "NameError" in ranks.fails("%dist_run defines.py")
    assert "NameError" in ranks.fails("%%distributed\nmine")
    ranks.ok("%dist_run -i defines.py")
    code = "import pickle\nisinstance(pickle.loads(pickle.dumps(mine)), Mine), seen"
    assert ranks.ok(f"%%distributed\n{code}").lines == ["[0-1] (True, 2)"]


@pytest.mark.parametrize(
    ("end", "error", "said"),
    [
        ("sys.exit()", "", ""),
        ("exit(0)", "", ""),
        ("sys.exit(3)", "exit code 3", ""),
        ("sys.exit('out of data')", "exit code 1", "out of data"),
    ],
)
def test_a_script_may_exit(ranks: Notebook, folder: Path, end: str, error: str, said: str) -> None:
    write(folder / "ends.py", f"import sys\nprint('begun')\n{end}\nprint('never')\n")
    result = ranks.run("%dist_run ends.py")
    assert result.lines == ["[0-1] begun"] and said in result.stream("stderr")
    assert result.status == ("error" if error else "ok")
    if error:
        assert result.error == f"[0-1] failed:\n{error}\nRanks 0-1 failed with ScriptExit: {error}."
    assert ranks.ok("%%distributed\n1").lines == ["[0-1] 1"]


def test_classes_of_a_script_can_be_pickled_and_sent_to_processes(
    ranks: Notebook, folder: Path
) -> None:
    write(folder / "pickles.py", PICKLES)
    shown = ranks.ok("%dist_run pickles.py").lines
    assert shown == ["[0-1] 3", "[0-1] spawn 8", "[0-1] fork 8"]


def test_a_script_may_have_event_loops_of_its_own(ranks: Notebook, folder: Path) -> None:
    main = "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    print('ran')\n"
    write(folder / "loops.py", f"{main}asyncio.run(main())\nasyncio.run(main())\n")
    for options in ("", "-i "):
        assert ranks.ok(f"%dist_run {options}loops.py").lines == ["[0-1] ran", "[0-1] ran"]
    assert ranks.ok("%%distributed\nawait asyncio.sleep(0)\n1").lines == ["[0-1] 1"]
    write(folder / "loops.py", "import asyncio\nprint('in')\nasyncio.run(asyncio.sleep(600))")
    stopped = stop_at(ranks, "%dist_run loops.py", {0: None, 1: None})
    assert "Ranks 0-1 stopped" in stopped.shown
    assert ranks.ok("%%distributed\nawait asyncio.sleep(0)\n1").lines == ["[0-1] 1"]


def test_a_script_can_be_stopped(ranks: Notebook, folder: Path) -> None:
    waits = "import time\ndef main():\n    for _ in range(600):\n        time.sleep(0.1)\n"
    write(folder / "waits.py", f"{waits}print('waits')\nmain()\n")

    result = stop_at(ranks, "%dist_run waits.py", {0: 4, 1: 4}, after="waits")
    assert "ranks 0-1 were in Python code (waits.py line 4)" in result.error
    assert "Ranks 0-1 stopped" in result.shown


def test_bad_options_of_dist_run_are_said(ranks: Notebook, folder: Path) -> None:
    assert "none.py.\nRelative paths start at " in ranks.fails("%dist_run none.py")
    assert "The following arguments are required: script" in ranks.fails("%dist_run")
    write(folder / "fine.py", "")
    assert ranks.refused("%dist_run --ranks 7 fine.py") == "unknown_rank"
    ranks.ok("%dist_shutdown")
    assert ranks.refused("%dist_run fine.py") == "no_pool"
    ranks.ok("%dist_init -n 2")
