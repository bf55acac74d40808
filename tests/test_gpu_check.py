"""``make gpu-check`` says what it could not run, and claims nothing of a GPU that is pretended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.gpu_check.page import Outcome, page

from .built_wheel import ROOT
from .fake_nvml.build import State

SOME = "hang,lease,stop,memory,hang_nccl,telemetry,tests"


def test_on_pretended_gpus(fake_nvml_folder: Path, tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    state.write(gpus=2, memory=80 << 30, name="NVIDIA H100 80GB HBM3")
    env = os.environ | state.environment(fake_nvml_folder)
    env["JUPYTER_DIST_LEASES"] = str(tmp_path / "leases")
    out = tmp_path / "page.md"
    command = [sys.executable, "-m", "tools.gpu_check", "--only", SOME, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    text = out.read_text()
    assert "**No GPU was used.**" in text and "**No GPU was used.**" in done.stderr
    assert done.returncode == 1
    assert "no GPU for torch (NVML names 2 NVIDIA H100 80GB HBM3 (80 GiB))" in text
    lines = text.splitlines()
    ran = [line.split("|")[1:3] for line in lines if line.startswith("| ")]
    assert ran[2:] == [[" hang ", " passed "], [" lease ", " passed "]], text + done.stderr
    assert "verdict: " in text and "Rank 1 has not begun it: it is in `time.sleep`" in text
    assert "leased by" in text
    for name in ("stop", "memory", "hang_nccl", "tests"):
        assert f"- *{name}*: torch finds no GPU." in lines
    assert any(line.startswith("- *telemetry*: ") for line in lines)


def test_a_page_of_a_gpu_has_figures_and_failures() -> None:
    outcomes = [
        Outcome("stop", "passed", 3.21, {"Stop": "12 ms", "of": "a|b"}),
        Outcome("memory", "failed", 4.0, reason="It says nothing."),
        Outcome("links", "not run", reason="There are no two GPUs."),
    ]
    text = page("Today: 1 GPU.", True, outcomes)
    assert "No GPU was used" not in text
    assert "| stop | passed | 3.2 | Stop: 12 ms; of: a\\|b |" in text
    assert "| memory | **failed** | 4.0 | – |" in text
    assert "Failed:\n\n- *memory*: It says nothing." in text
    assert "Not run:\n\n- *links*: There are no two GPUs." in text


def test_an_unknown_check_is_refused() -> None:
    command = [sys.executable, "-m", "tools.gpu_check", "--only", "stop,nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "There is no check nothing." in done.stderr
