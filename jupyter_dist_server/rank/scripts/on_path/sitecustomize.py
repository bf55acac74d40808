"""Makes the Python processes of a job answer `jdist why`; Python imports it at its start.

See https://docs.python.org/3/library/site.html. The folder of this file is in the PYTHONPATH of
jobs, whatever their Python is, so it needs nothing but Python 3.8. A process of torchrun listens
from its start; others, as those of `torch.multiprocessing.spawn`, once they import
`torch.distributed`. What answers is imported when somebody asks.
"""

from __future__ import annotations

import _thread
import faulthandler
import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # `typing` would take milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MODULE = "torch.distributed.distributed_c10d"
_kept: list[object] = []  # for as long as the process lives


def _listen(folder: str) -> None:
    import _socket

    listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    listening.bind(os.path.join(folder, str(os.getpid())))  # as in `way_in`
    listening.listen(8)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    stack = os.open(os.path.join(folder, f"{os.getpid()}.stack"), flags, 0o600)
    faulthandler.register(int(os.environ["JUPYTER_DIST_STACK_SIGNAL"]), stack, all_threads=False)
    # Not by `threading`: libraries that replace it expect that no thread runs.
    _thread.start_new_thread(_serve, (listening,))


def _serve(listening: Any) -> None:
    while True:
        try:
            descriptor, _ = listening._accept()
        except OSError:  # the script has closed what it does not know
            return
        _answer(descriptor)


def _answer(descriptor: int) -> None:
    import json
    import socket

    with socket.socket(fileno=descriptor) as connection:
        connection.settimeout(10)
        try:
            asked = connection.recv(64)
            from jupyter_dist_server.rank.scripts.answer import answer

            connection.sendall(answer(asked))
        except OSError:  # who asked has left
            return
        except Exception as error:  # another version of ours, or none, or torch's internals differ
            said = json.dumps({"failure": f"{type(error).__name__}: {error}"})
            connection.sendall(said.encode())


def _serve_recorder(folder: str) -> None:
    """Let a thread of C++ tell the collectives, also while Python code does not run."""
    server = getattr(sys.modules.get("torch._C._distributed_c10d"), "_WorkerServer", None)
    if server:
        error, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)  # it notes that it listens
        try:
            _kept.append(server(os.path.join(folder, f"{os.getpid()}-fr")))
        finally:
            os.dup2(error, 2)
            os.close(error)
            os.close(nothing)


class _Importer:
    """Sees that `torch.distributed` is imported, and finds nothing."""

    def __init__(self, folder: str, is_rank: bool) -> None:
        self._folder, self._is_rank = folder, is_rank

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == _MODULE:
            sys.meta_path.remove(self)
            _try(_serve_recorder if self._is_rank else _listen, self._folder)


def _try(begin: Callable[[str], None], folder: str) -> None:
    try:
        begin(folder)
    except Exception as error:  # the script runs all the same
        sys.stderr.write(f"jdist why cannot ask this process: {error}\n")


def _begin() -> None:
    folder = os.environ.get("JUPYTER_DIST_EVIDENCE", "")
    if os.path.isdir(folder):
        is_rank = "RANK" in os.environ
        sys.meta_path.insert(0, _Importer(folder, is_rank))
        if is_rank:
            _try(_listen, folder)


def _run_next() -> None:
    """Run the `sitecustomize` of this Python, which this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    found = PathFinder.find_spec("sitecustomize", others)
    if found and found.origin:
        loader: Any = found.loader
        exec(
            loader.get_code(found.name),
            {"__name__": found.name, "__file__": found.origin, "__spec__": found},
        )


_begin()
_run_next()
