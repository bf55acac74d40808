"""Ranks start and run cells with releases of ipykernel and IPython that name things otherwise."""

from __future__ import annotations

import ast
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from jupyter_dist_server.rank import ipykernel_internals

from ..pool_driver import client_of, request, running, text_of

NAMES = (
    "_bind_socket",
    "_execute_sleep",
    "_format_exception_for_storage",
    "_get_exc_info",
    "_last_traceback",
    "_last_traceback_during_displayhook",
    "_main_asyncio_lock",
    "_publish_status",
    "_showtraceback",
)
"""The private names of both packages that `ipykernel_internals` uses."""
WARNED = {"_get_exc_info", "_publish_status", "_showtraceback"}
"""Those of which the pool's notices say what is lost."""


def private_names() -> set[str]:
    """Return the private attributes that the module defines for others, or takes of others."""
    tree = ast.parse(Path(str(ipykernel_internals.__file__)).read_text())
    used, own = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            (own if isinstance(node.ctx, ast.Store) else used).add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            used.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.add(node.value)
    return {name for name in used | own if re.fullmatch(r"_[a-z]\w*", name)}


def sources() -> str:
    """Return all of ipykernel and IPython's core."""
    files = [*_folder("ipykernel").glob("*.py"), *(_folder("IPython") / "core").glob("*.py")]
    return "".join(path.read_text() for path in files)


def _folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec and spec.origin
    return Path(spec.origin).parent


def test_no_name_is_left_out() -> None:
    theirs = sources()
    used = {name for name in private_names() if re.search(rf"\b{name}\b", theirs)}
    assert used - {"_session", "_socket", "_thread"} <= set(NAMES)  # those three are ours


@pytest.mark.parametrize("name", NAMES)
async def test_cells_run_where_a_name_is_another(name: str, tmp_path: Path) -> None:
    changed, left_out = 0, shutil.ignore_patterns("__pycache__", "tests")
    for package in ("ipykernel", "IPython"):
        copy = tmp_path / "release" / package
        shutil.copytree(_folder(package), copy, ignore=left_out)
        for path in copy.rglob("*.py"):
            text = path.read_text()
            new = re.sub(rf"\b{name}\b", f"_new{name}", text)
            if new != text:
                path.write_text(new)
                changed += 1
    if not changed:
        pytest.skip("this release has no such name")
    env = {"PYTHONPATH": str(tmp_path / "release")}
    async with running(request(tmp_path, num_ranks=1, env=env)) as pool, client_of(pool) as client:
        assert str(tmp_path) in await text_of(client, "import ipykernel\nprint(ipykernel.__file__)")
        await text_of(client, "import os, sys, asyncio\nx = 6\nawait asyncio.sleep(0)")
        assert await text_of(client, "print(x * 7)\nos.system('echo from a shell')") == (
            "42\nfrom a shell\n"
        )
        outcome = (await client.execute("1 / 0", [0], lambda *_: None))[0]
        assert outcome.status == "error" and outcome.content["ename"] == "ZeroDivisionError"
        assert await text_of(client, "print(x)") == "6\n"
        assert any(f"{name}: " in one for one in pool.record.notices) == (name in WARNED)
