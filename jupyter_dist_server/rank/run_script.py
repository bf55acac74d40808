"""Runs a script in a rank like a program of its own, for ``%dist_run``.

The script is ``__main__`` while it runs, so what it defines can be pickled, and processes that it
spawns can import it. A process would end with its script. A rank goes on, so all that the script
changed in its process is undone. Its traceback begins in the script.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import gc
import importlib
import importlib.util
import linecache
import logging
import multiprocessing
import os
import signal
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

from IPython import get_ipython

from .users_code import run_code, without_frames_of_ours

_MAIN = ("__main__", "__mp_main__")
"""The second name is for processes that `multiprocessing` spawned."""
_helpers: dict[str, tuple[str, int]] = {}
"""Modules that scripts imported from their own folder: the file, and its time."""
_LoggerState = tuple[list[logging.Handler], int, bool, bool]
"""Handlers, level, whether it propagates, and whether it is disabled."""


class ScriptExit(Exception):
    """A script ended with an exit code other than 0."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def run_script(
    target: str, argv: list[str], *, is_module: bool, keep: bool, where: str | None = None
) -> None:
    """Run a script, or a module as ``python -m`` does, in the folder `where` if the node has it.

    If `keep`, it runs among the rank's variables; otherwise, what it changed is undone. For a
    module, the first item of `argv` is replaced by its file.
    """
    shell = get_ipython()
    shell.kernel.group.bring_back()  # libraries such as Accelerate do not initialize it again
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
            with _outside_of_event_loop():
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
    """Fail as a process with this exit code would; a text is a message."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
    number = code if isinstance(code, int) else 0 if code is None else 1
    if number:
        raise ScriptExit(f"exit code {number}") from None


@contextlib.contextmanager
def _surroundings(shell: Any, keep: bool) -> Iterator[None]:
    main = sys.modules["__main__"]
    quitters = {name: vars(builtins).pop(name, None) for name in ("exit", "quit")}
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # IPython's are hidden in cells
    try:
        with contextlib.nullcontext() if keep else _restored():
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
            gc.collect()  # functions and globals refer to each other, and so keep GPU memory


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """Let a script change what belongs to its process, and undo that."""
    arguments, path, folder, variables = sys.argv, sys.path[:], os.getcwd(), dict(os.environ)
    streams = sys.stdin, sys.stdout, sys.stderr
    hook, start_method = sys.excepthook, multiprocessing.get_start_method(allow_none=True)
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    loggers: dict[str, _LoggerState] = {
        logger.name: (logger.handlers[:], logger.level, logger.propagate, logger.disabled)
        for logger in _loggers_of_scripts()
    }
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        sys.stdin, sys.stdout, sys.stderr = streams
        for logger in _loggers_of_scripts():
            _restore(logger, loggers.get(logger.name, ([], logging.NOTSET, True, False)))
        if multiprocessing.get_start_method(allow_none=True) != start_method:
            multiprocessing.set_start_method(start_method, force=True)
        sys.argv, sys.path[:], sys.excepthook = arguments, path, hook
        os.chdir(folder)
        for name in os.environ.keys() - variables.keys():
            del os.environ[name]
        os.environ.update(variables)


def _loggers_of_scripts() -> list[logging.Logger]:
    """Return all loggers but those of modules, which stay imported and configure them once."""
    named = [
        logger
        for name, logger in list(logging.root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and (name == "__main__" or name not in sys.modules)
    ]
    return [logging.root, *named]


def _restore(logger: logging.Logger, state: _LoggerState) -> None:
    handlers, level, logger.propagate, logger.disabled = state
    for handler in logger.handlers[:]:
        if handler not in handlers:
            logger.removeHandler(handler)
            with contextlib.suppress(OSError, ValueError):  # its file may be closed
                handler.flush()
                handler.close()
    for handler in handlers:
        logger.addHandler(handler)  # those that the script has removed
    logger.setLevel(level)


@contextlib.contextmanager
def _outside_of_event_loop() -> Iterator[None]:
    """Let a program that runs in a cell, and so in the kernel's event loop, run its own."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    asyncio.tasks._leave_task(loop, task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio.set_event_loop(loop)
        asyncio._set_running_loop(loop)
        asyncio.tasks._enter_task(loop, task)


@contextlib.contextmanager
def _helpers_up_to_date(folder: str) -> Iterator[None]:
    """Import a script's modules again if one was edited since the last run, or is another script's.

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
    with contextlib.suppress(OSError):
        return os.stat(file).st_mtime_ns
    return 0
