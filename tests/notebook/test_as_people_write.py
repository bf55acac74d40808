"""Every block of `as_people_write.md` runs as it is written there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from jupyter_dist_server.common.files.shared_folder import FOLDER

from ..environment import environment
from ..fake_nvml.build import State
from ..libraries.program import PROGRAMS
from ..notebook_driver import Notebook, plain_notebook
from ..result import Result

HERE = Path(__file__).parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_COMPILED = "Torch not compiled with CUDA enabled"
TORCHRUN = re.compile(r"(?P<env>(?:\w+=\S+ )*)torchrun --nproc_per_node=(?P<n>\d+) (?P<rest>.*)")
BLOCKS = [
    (kind, code, how, lines.splitlines())
    for (kind, code), (how, lines) in pairwise(
        FENCE.findall((HERE / "as_people_write.md").read_text())
    )
    if how in ("text", "error")
]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, fake_nvml_folder: Path) -> Iterator[Notebook]:
    """Return a notebook inside of a Slurm job on a machine that pretends to have eight GPUs."""
    gpus = State(tmp_path_factory.mktemp("nvml") / "state")
    gpus.write(gpus=8, name="NVIDIA H100", memory=80 * 2**30)
    variables = gpus.environment(fake_nvml_folder) | {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "2"}
    variables[FOLDER] = str(tmp_path_factory.mktemp("leases"))
    env = environment(tmp_path_factory.mktemp("home"), **variables)
    folder = tmp_path_factory.mktemp("folder")
    shutil.copy(PROGRAMS / "windows.py", folder / "example_ddp.py")
    notebook = plain_notebook(env, folder)
    yield notebook
    notebook.close()


def cells_of(code: str) -> list[str]:
    """Cut a block at its cell magics, and at the magics that follow one."""
    cells: list[list[str]] = [[]]
    for line in code.splitlines():
        inside = any(each.startswith("%%") for each in cells[-1])
        if line.startswith("%%") or (line.startswith("%") and inside):
            above = len(cells[-1])
            while above and re.fullmatch(r"\s*(#.*)?", cells[-1][above - 1]):
                above -= 1
            cells.append([*cells[-1][above:], line])
            del cells[-2][above:]
        else:
            cells[-1].append(line)
    return ["\n".join(cell) for cell in cells if any(cell)]


def cells_of_shell(code: str) -> list[str]:
    """Write a shell's lines for a notebook: what torchrun starts runs on a pool."""
    cells = []
    for line in filter(None, code.splitlines()):
        if match := TORCHRUN.fullmatch(line):
            start = f"%dist_init -n {match['n']}"
            for variable in match["env"].split():
                name, _, value = variable.partition("=")
                gpus = name == "CUDA_VISIBLE_DEVICES"
                start += f" --gpu-ids {value}" if gpus else f" --env {variable}"
            cells += [start, f"%dist_run {match['rest']}"]
        else:
            cells.append(line if line.startswith("#") else f"!{line}")
    return cells


def run(people: Notebook, cell: str) -> Result:
    """Run a cell; a pool that it cannot use is shut down first."""
    result = people.run(cell)
    if "already has a pool" in result.error:
        people.ok("%dist_shutdown")
        result = people.run(cell)
    return result


@pytest.mark.parametrize(("kind", "code", "how", "lines"), BLOCKS)
def test_a_block_runs(
    people: Notebook, tmp_path: Path, kind: str, code: str, how: str, lines: list[str]
) -> None:
    people.ok("%load_ext jupyter_dist_server")
    if kind == "script":
        (tmp_path / "script.py").write_text(code)
        run(people, "%dist_init -n 2")
        ways = [[f"%dist_run {tmp_path}/script.py"], ["%%distributed\n" + code]] * 2
    else:
        ways = [cells_of(code) if kind == "python" else cells_of_shell(code)]
    for cells in ways:
        shown, result = "", None
        for cell in cells:
            assert result is None or result.status == "ok", shown
            result = run(people, cell)
            # torch's usual build has CUDA, and looks for the driver.
            shown += result.shown.replace("Found no NVIDIA driver", NOT_COMPILED)
        assert result and result.status == ("error" if how == "error" else "ok"), shown
        assert [line for line in lines if line not in shown] == [], shown
