"""Another local user: real processes with a second uid, which try what that user could try."""

from __future__ import annotations

import subprocess
import sys

from ..waiting import PATIENCE

UID = 64321
_BECOME = f"""
import datetime, encodings.idna, fcntl, json, os, socket, struct, sys, time
{{imports}}
os.setgroups([])
os.setgid({UID})
os.setuid({UID})
"""
"""What is imported first: Python itself may lie where the other user may read nothing."""


def begin(code: str, *arguments: object, imports: str = "") -> subprocess.Popen[str]:
    """Start Python code as the other user."""
    return subprocess.Popen(
        [sys.executable, "-c", _BECOME.format(imports=imports) + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> None:
    """End what `begin` has started."""
    process.kill()
    process.communicate()


def said(code: str, *arguments: object, imports: str = "") -> str:
    """Run Python code as the other user, and return what it prints."""
    process = begin(code, *arguments, imports=imports)
    try:
        return process.communicate(timeout=PATIENCE)[0].strip()
    finally:
        end(process)
