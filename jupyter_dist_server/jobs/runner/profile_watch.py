"""Has the profiles of a job's ranks joined, and written into its log, once all are there."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.patience import patience
from ...common.processes.python_command import python_command

if TYPE_CHECKING:
    import subprocess

_JOIN = "jupyter_dist_server.pools.join_profiles"


class ProfileWatch:
    """Waits for the files of ranks in a folder, and has them joined in `file`; told in `log`."""

    def __init__(self, folder: Path, file: str, log: str) -> None:
        self._folder, self._file, self._log = folder, file, log
        self.due: float | None = time.monotonic() + patience.cleanup
        """When to look, by the monotonic clock; `None` once they are joined."""
        self._joins: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        """Have the profiles joined if all ranks have written theirs."""
        self.due = time.monotonic() + patience.cleanup
        found = [*self._folder.glob("*.profile")]
        if found and len(found) >= int(found[0].name.split(".")[1]):
            self._join()

    def end(self) -> None:
        """Wait until they are joined, or have those joined that are there: the job has ended."""
        if self._joins is None and [*self._folder.glob("*.profile")]:
            self._join()
        if self._joins:
            import subprocess  # as below

            with contextlib.suppress(subprocess.TimeoutExpired):  # what is left of a job is killed
                self._joins.wait(patience.program)

    def _join(self) -> None:
        import subprocess  # not above: few runners need it

        self.due = None
        with open(self._log, "ab") as log:
            self._joins = subprocess.Popen(
                [*python_command(sys.executable, _JOIN), str(self._folder), self._file],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
