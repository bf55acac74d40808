"""What a job is asked for with, and again; and in which kernel's environment it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.jobs.submit.job_environment import (
    kernel_environment,
    kernel_names,
)
from jupyter_dist_server.jobs.submit.job_request import JobRequest


def test_what_asks_again_needs_no_folder_and_exports_no_more() -> None:
    request = JobRequest(command=["true"], venv="env", export="A=secret")
    assert request.again("/work", "/data", None) == {
        "command": ["true"],
        "chdir": "/data",
        "venv": "/work/env",
        "export": "NONE",
    }
    assert "export" not in JobRequest(command=["true"]).again("/work", "/data", None)


def test_a_command_runs_in_kernels_of_python_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for name, program in (("Java", "java"), ("Python", "/opt/bin/python3.12")):
        folder = tmp_path / "kernels" / name.lower()
        folder.mkdir(parents=True)
        spec = {"argv": [program, "{connection_file}"], "display_name": name, "language": name}
        (folder / "kernel.json").write_text(json.dumps(spec))
    names = kernel_names()
    assert "python" in names and "java" not in names
    found = kernel_environment("python", {"PATH": "/bin"}, is_command=True)
    assert found["PATH"] == "/opt/bin:/bin"
    with pytest.raises(DistError, match="Kernel java is not started by a Python program"):
        kernel_environment("java", {}, is_command=True)
    assert kernel_environment("java", {}, is_command=False) == {}  # of a notebook
