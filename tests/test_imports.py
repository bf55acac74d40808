"""Whatever the package imports, its own dependencies bring."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib")  # new in Python 3.11

ROOT = Path(__file__).parent.parent
PACKAGES = {"nvidia_ml_py": "pynvml", "pyzmq": "zmq"}
"""By the names of distributions, those of modules that are called otherwise."""
OPTIONAL = {"argcomplete", "matplotlib"}
"""Modules that the package does without: who imports them deals with their absence."""


def declared() -> tuple[set[str], set[str]]:
    """Return the modules that are always there, and those that are there with an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {k: v for k, v in project["optional-dependencies"].items() if k != "test"}

    def modules(requirements: Iterable[str]) -> set[str]:
        found = (re.match(r"[\w-]+", line) for line in requirements)
        names = {match[0].lower().replace("-", "_") for match in found if match}
        return {PACKAGES.get(name, name) for name in names}

    return modules(project["dependencies"]), modules(chain(*extras.values()))


def imported() -> dict[str, set[str]]:
    """Return the modules of others that the package imports, and where."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "jupyter_dist_server").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            for name in names:
                found.setdefault(name.partition(".")[0].lower(), set()).add(path.name)
    ours = {"jupyter_dist_server", *map(str.lower, sys.stdlib_module_names)}
    return {name: where for name, where in found.items() if name not in ours}


def test_every_import_is_declared() -> None:
    always, with_extras = declared()
    missing = imported().keys() - always - with_extras - OPTIONAL
    assert not missing, {name: imported()[name] for name in missing}


def test_no_dependency_has_an_upper_bound_but_jupyter_server() -> None:
    """Its next major version may refuse extensions that do not know it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [line.partition(";")[0] for line in project["dependencies"]]
    bounded = [line for line in requirements if "<" in line or "==" in line]
    assert bounded == ["jupyter_server>=2.14,<3"]
