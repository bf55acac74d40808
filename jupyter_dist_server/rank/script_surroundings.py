"""What a script changes in its process, and what ``%dist_run`` undoes when it ends.

A process would end with its script; a rank goes on, to cells and to further runs of the script.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import NamedTuple


class _LoggerState(NamedTuple):
    handlers: list[logging.Handler]
    level: int
    propagate: bool
    disabled: bool


_NEW = _LoggerState([], logging.NOTSET, True, False)


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Let a script change what belongs to its process, and undo that."""
    arguments, path, folder, variables = sys.argv, sys.path[:], os.getcwd(), dict(os.environ)
    streams = sys.stdin, sys.stdout, sys.stderr
    hook, start_method = sys.excepthook, multiprocessing.get_start_method(allow_none=True)
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    loggers = {logger.name: _state(logger) for logger in _loggers_of_scripts()}
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        sys.stdin, sys.stdout, sys.stderr = streams
        for logger in _loggers_of_scripts():
            _restore(logger, loggers.get(logger.name, _NEW))
        if multiprocessing.get_start_method(allow_none=True) != start_method:
            multiprocessing.set_start_method(start_method, force=True)
        sys.argv, sys.path[:], sys.excepthook = arguments, path, hook
        os.chdir(folder)
        for name in {*variables, *os.environ}:
            if name not in variables:
                del os.environ[name]
            elif os.environ.get(name) != variables[name]:
                os.environ[name] = variables[name]


def _loggers_of_scripts() -> list[logging.Logger]:
    """Return all loggers but those of modules, which stay imported and set theirs up only once."""
    named = [
        logger
        for name, logger in list(logging.root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and (name == "__main__" or name not in sys.modules)
    ]
    return [logging.root, *named]


def _state(logger: logging.Logger) -> _LoggerState:
    return _LoggerState(logger.handlers[:], logger.level, logger.propagate, logger.disabled)


def _restore(logger: logging.Logger, state: _LoggerState) -> None:
    for handler in logger.handlers[:]:
        if handler not in state.handlers:
            logger.removeHandler(handler)
            with contextlib.suppress(OSError, ValueError):  # its file may be closed
                handler.flush()
                handler.close()
    for handler in state.handlers:
        logger.addHandler(handler)  # those that the script has removed
    logger.setLevel(state.level)
    logger.propagate, logger.disabled = state.propagate, state.disabled
