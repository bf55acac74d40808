"""What a real bash offers for ``jdist``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

TRY = """
eval "$(register-python-argcomplete jdist)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
_python_argcomplete jdist
printf '%s\\n' "${COMPREPLY[@]% }"
"""


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes_commands_options_and_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("argcomplete")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = tmp_path / "jdist"
    script.write_text(
        f"#!{sys.executable}\nfrom jupyter_dist_server.cli.main import script\nscript()\n"
    )
    script.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}", prepend=":")
    store = Store(store_folder())
    job = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"), held=True)
    store.submit([job] * 2, "one")
    store.close()

    def offered(line: str) -> list[str]:
        answer = subprocess.run(["bash", "-c", TRY, "-", line], stdout=subprocess.PIPE, text=True)
        return answer.stdout.split()

    assert offered("jdist su") == ["submit"]
    assert offered("jdist submit --gpu-") == ["--gpu-ids", "--gpu-memory"]
    assert {"1", "2"} <= set(offered("jdist show "))
