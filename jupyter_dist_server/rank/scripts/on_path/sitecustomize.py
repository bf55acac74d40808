"""Makes the Python processes of a job answer `jdist why`; Python imports it at its start.

See https://docs.python.org/3/library/site.html. The folder of this file is in the PYTHONPATH of
jobs, whatever their Python is: it needs Python 3.6, and imports next to nothing. A process listens
once it imports `torch.distributed`, if this package is installed for it. A rank of torchrun writes
its stack at a signal from its start.
"""

import faulthandler
import os
import sys
from importlib.machinery import PathFinder

_MODULE = "torch.distributed.distributed_c10d"


def _write_stack_at_signal(folder):
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    file = os.open(os.path.join(folder, f"{os.getpid()}.stack"), flags, 0o600)
    faulthandler.register(int(os.environ["JUPYTER_DIST_STACK_SIGNAL"]), file, all_threads=False)


class _Importer:
    """Sees that `torch.distributed` is imported, and finds nothing."""

    def __init__(self, folder, is_rank):
        self._folder, self._is_rank = folder, is_rank

    def find_spec(self, name, path=None, target=None):
        if name == _MODULE and self._folder:
            folder, self._folder = self._folder, ""
            if self._is_rank:
                os.environ.pop("JUPYTER_DIST_EVIDENCE", None)  # its workers are no ranks
            try:
                from jupyter_dist_server.rank.scripts.listen import listen

                listen(folder, self._is_rank)
            except Exception:  # not installed here, or the folder is gone: the script runs as ever
                return


def _begin():
    folder = os.environ.get("JUPYTER_DIST_EVIDENCE", "")
    if not os.path.isdir(folder):
        return
    is_rank = "RANK" in os.environ
    sys.meta_path.insert(0, _Importer(folder, is_rank))
    if is_rank:
        try:
            _write_stack_at_signal(folder)
        except (OSError, RuntimeError):  # a full disk: its stack is not known then
            return


def _run_next():
    """Run the `sitecustomize` of this Python, which this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.abspath(path) for path in sys.path]
    behind = sys.path[paths.index(here) + 1 :] if here in paths else []
    found = PathFinder.find_spec("sitecustomize", behind)
    if found and found.loader:
        from importlib.util import module_from_spec

        sys.modules["sitecustomize"] = module = module_from_spec(found)
        found.loader.exec_module(module)


_begin()
_run_next()
