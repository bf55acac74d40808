"""Running a script in a rank as a program of its own: what ``%dist_run`` sends.

The script is ``__main__`` while it runs, so that what it defines can be pickled, and processes that
it spawns can import it. Its traceback begins in the script.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import importlib.util
import linecache
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

from IPython import get_ipython

from .ipykernel_internals import outside_of_event_loop
from .script_surroundings import restored
from .users_code import run_code, without_frames_of_ours

_MAIN = ("__main__", "__mp_main__")
"""The second is how processes that `multiprocessing` spawned call the first."""
_helpers: dict[str, tuple[str, int]] = {}
"""Modules that scripts imported from their own folder: the file, and when it was changed."""


class ScriptExit(Exception):
    """A script ended with an exit code other than 0."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def run_script(
    target: str, argv: list[str], *, is_module: bool, keep: bool, where: str | None = None
) -> None:
    """Run a script, or a module as ``python -m`` does.

    Parameters
    ----------
    target : str
        The script's absolute path, or the module's name.
    argv : list of str
        The script's `sys.argv`; a module's begins with its file instead.
    is_module : bool
        Whether `target` is a module.
    keep : bool
        Whether it runs among the rank's variables and leaves its own there. Otherwise what it
        changes in its process is as before afterwards, see `script_surroundings`.
    where : str, optional
        The folder to run it in, if there is one of this name on the rank's node.

    Raises
    ------
    ScriptExit
        If the script exits with a code other than 0.
    """
    shell = get_ipython()
    # Libraries such as Accelerate remember that they have initialised it.
    shell.kernel.group.bring_back()
    module = shell.user_module if keep else types.ModuleType("__main__")
    with contextlib.ExitStack() as undo:
        undo.enter_context(without_frames_of_ours(shell))
        undo.enter_context(_surroundings(shell, keep))
        if where and os.path.isdir(where):
            os.chdir(where)
        folder = os.getcwd() if is_module else os.path.dirname(os.path.realpath(target))
        undo.enter_context(_helpers_up_to_date(folder))
        for name in _MAIN:
            sys.modules[name] = module
        sys.argv = argv
        sys.path.insert(0, folder)
        try:
            code = _load_module(target, module) if is_module else _load_script(target, module)
            with outside_of_event_loop():
                run_code(code, module.__dict__)
        except SystemExit as end:
            _raise_for_code(end.code)


def _load_script(path: str, module: types.ModuleType) -> types.CodeType:
    module.__dict__.update(__file__=path, __spec__=None, __package__=None)
    linecache.checkcache(path)
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def _load_module(name: str, module: types.ModuleType) -> types.CodeType:
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
        if spec is None:
            why = f"'{name}' is a package and cannot be directly executed"
            raise ModuleNotFoundError(f"No module named {name}.__main__; {why}", name=name)
    loader: Any = spec and spec.loader
    if spec is None or not hasattr(loader, "get_code"):
        raise ModuleNotFoundError(f"No module named {name}, or it cannot be run", name=name)
    file = spec.origin or name
    sys.argv[0] = file
    module.__dict__.update(__file__=file, __spec__=spec, __package__=spec.parent, __loader__=loader)
    linecache.checkcache(file)
    code: types.CodeType = loader.get_code(spec.name)
    return code


def _raise_for_code(code: Any) -> None:
    """Fail as a process with this exit code would; one that is no number is a message."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
    number = code if isinstance(code, int) else 0 if code is None else 1
    if number:
        raise ScriptExit(f"exit code {number}") from None


@contextlib.contextmanager
def _surroundings(shell: Any, keep: bool) -> Iterator[None]:
    """Let a script be the main program, and undo that."""
    main = sys.modules["__main__"]
    quitters = {name: vars(builtins).pop(name, None) for name in ("exit", "quit")}
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # a cell has none, as it has IPython's
    try:
        with contextlib.nullcontext() if keep else restored():
            yield
    finally:
        for name, quitter in quitters.items():
            del vars(builtins)[name]
            if quitter is not None:
                vars(builtins)[name] = quitter
        if not keep:
            for name in _MAIN:
                sys.modules[name] = main
            shell.kernel.group.bring_back()
            gc.collect()  # functions and globals hold each other, and with them GPU memory


@contextlib.contextmanager
def _helpers_up_to_date(folder: str) -> Iterator[None]:
    """Import a script's modules anew if one was edited since the last run, or is another script's.

    Another script may have a module of the same name in its own folder.
    """
    own = os.path.join(folder, "")
    if any(_changed(file) != when or not file.startswith(own) for file, when in _helpers.values()):
        for name in _helpers:
            sys.modules.pop(name, None)
        _helpers.clear()
    importlib.invalidate_caches()
    before = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(own) and "site-packages" not in file and file.endswith(".py"):
                _helpers[name] = file, _changed(file)


def _changed(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0
