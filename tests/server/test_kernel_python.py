"""Ranks that the panel starts run in the Python of the notebook's kernel, whatever starts that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.processes.kernel_python import python_of_kernelspec

from ..server_driver import Server
from .client import Client

KERNEL = ["-m", "ipykernel_launcher", "-f", "{connection_file}"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a virtual environment that has all packages of ours."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    ours = sysconfig.get_path("purelib")
    there = sysconfig.get_path("purelib", "venv", vars={"base": folder, "platbase": folder})
    Path(there, "ours.pth").write_text(f"import site; site.addsitedir({ours!r})")
    return folder / "bin" / "python"


@contextmanager
def kernel_of(server: Server, **spec: Any) -> Iterator[str]:
    """Start a kernel of a kernelspec; yield its id when it answers."""
    folder = Path(server.env["JUPYTER_DATA_DIR"]) / "kernels" / "other"
    folder.mkdir(parents=True, exist_ok=True)
    spec = {"display_name": "Other", "language": "python", **spec}
    (folder / "kernel.json").write_text(json.dumps(spec))
    notebook = server.notebook("other")
    yield str(notebook.kernel_id)
    notebook.close()


@pytest.mark.parametrize("how", ["by env", "by a program that waits for it"])
def test_a_kernels_own_python(server: Server, client: Client, python: Path, how: str) -> None:
    if how == "by env":
        path = f"{python.parent}{os.pathsep}${{PATH}}"
        spec: dict[str, Any] = {"argv": ["/usr/bin/env", "python", *KERNEL], "env": {"PATH": path}}
    else:
        wait = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
        spec = {"argv": ["python", "-c", wait, str(python), *KERNEL]}
    with kernel_of(server, **spec) as kernel:
        pool = client.start(kernel_id=kernel, num_ranks=1)
        assert pool["python"] == str(python)
        result = client.post(f"pools/{pool['id']}/execute", {"code": "import sys; sys.prefix"})
        assert str(python.parent.parent) in str(result)


def test_a_kernel_that_is_no_python_program(server: Server, client: Client, python: Path) -> None:
    program = python.with_name("xpython")
    program.symlink_to(python)
    with kernel_of(server, argv=[str(program), *KERNEL]) as kernel:
        error = client.post("pools", {"kernel_id": kernel}, 400)
    assert error["code"] == "kernel_python_unknown"
    assert error["message"].endswith(f"its kernelspec starts {program}.")


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["python3", *KERNEL], sys.executable),
        (["/opt/bin/python3.12", *KERNEL], "/opt/bin/python3.12"),
        (["/usr/bin/env", "-S", "A=1", "python3", *KERNEL], "{there}/python3"),
        (["uv", "run", "python", *KERNEL], None),
        (["/usr/bin/env", "bash", "start.sh"], None),
        (
            ["python", "-m", "nb_conda_kernels.runner", "/opt", "{there}/..", "python3", *KERNEL],
            "{there}/../bin/python3",
        ),
    ],
)
def test_the_python_of_a_kernelspec(argv: list[str], found: str | None, tmp_path: Path) -> None:
    there = tmp_path / "bin"
    there.mkdir()
    (there / "python3").symlink_to(sys.executable)
    words = [word.format(there=there, connection_file="{connection_file}") for word in argv]
    expected = found and found.format(there=there)
    assert python_of_kernelspec(words, str(there)) == expected
