"""Cells that ran on ranks as a script for torchrun."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from IPython.core.inputtransformer2 import TransformerManager

from ...common.protocol.pool_record import PoolRecord
from ...common.rank_specs import format_ranks
from .ran_cells import RanCell, RanCells

_CELL_MAGIC = re.compile(r"\s*%%(?!time\s*\n).*")
_TIMED = re.compile(r"(\s*)%time\s+(.*)", re.DOTALL)
_ONLY_IN_IPYTHON = {"In", "Out", "get_ipython"}
_GROUP = {"init_process_group", "destroy_process_group"}

_SHOW = """
try:
    from IPython.lib.pretty import pretty as _pretty
except ImportError:
    _pretty = repr


def _show(value):
    \"\"\"Print a cell's last value as the notebook did.\"\"\"
    if value is not None:
        print(_pretty(value))
"""
_STANDING_GROUP = """
# Cells initialize and destroy the process group. As in the notebook, they share this one.
_destroy = dist.destroy_process_group
dist.init_process_group = dist.destroy_process_group = lambda *_, **__: None
"""


@dataclass
class Script:
    """A script, the command that runs it, and what is missing in it."""

    text: str
    command: str
    cells: int
    missing: list[str]


@dataclass
class _Cell:
    """One cell as Python."""

    text: str
    missing: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    futures: list[str] = field(default_factory=list)


def _torchrun(pool: PoolRecord, path: str) -> str:
    """Return the command that runs a script with a pool's number of ranks, on its GPUs."""
    here = [rank for rank in pool.ranks if rank.node == pool.ranks[0].node]
    gpus = dict.fromkeys(rank.gpu.index for rank in here if rank.gpu)
    mask = f"CUDA_VISIBLE_DEVICES={','.join(map(str, gpus))} " if gpus else ""
    return f"{mask}torchrun --nproc_per_node {pool.world_size} {shlex.quote(path)}"


def as_script(ran: RanCells, path: str) -> Script:
    """Translate the cells that ran; `path` is the script's."""
    assert ran.pool
    missing = []
    if ran.dropped:
        missing.append(f"The first {ran.dropped} cells: the kernel remembers the last ones only.")
    body, names, futures, cells = [], set(), [], 0
    for cell in ran:
        where = "" if cell.number is None else f"Cell {cell.number}"
        on = f" on ranks {format_ranks(cell.ranks)}" if cell.ranks else ""
        done = _translate(cell, ran.pool.world_size)
        comments = [f"# {where}{on}"] if where else []
        comments += [f"# Not translated: {why}" for why in done.missing]
        body.append("\n".join([*comments, done.text]))
        missing += [f"{where}: {why}" if where else why for why in done.missing]
        names |= done.names
        futures += done.futures
        cells += bool(cell.code)
    command = _torchrun(ran.pool, path)
    head = _head(ran.pool, command, missing[:1] if ran.dropped else [], futures, names)
    if ran.pool.backend != "none":
        # A cell may have set another `dist`.
        destroy = "_destroy" if names & _GROUP else "torch.distributed.destroy_process_group"
        body.append(f"{destroy}()\n")
    return Script("\n".join([head, *body]), command, cells, missing)


def _head(
    pool: PoolRecord, command: str, missing: list[str], futures: list[str], names: set[str]
) -> str:
    gpus: list[int | None] = [rank.gpu.index for rank in pool.ranks if rank.gpu]
    lines = [
        '"""Cells that ran on ranks, written by %dist_export of Jupyter Dist.',
        "",
        f"Run it: {command}",
        '"""',
        "",
        *(f"# Not translated: {why}" for why in missing),
        *dict.fromkeys(futures),
        "import os",
        "",
        "import torch",
        "import torch.distributed as dist",
        *(["from IPython.display import display"] if "display" in names else []),
        "",
        'rank = int(os.environ["RANK"])',
        'local_rank = int(os.environ["LOCAL_RANK"])',
        'world_size = int(os.environ["WORLD_SIZE"])',
    ]
    devices = [rank.device for rank in pool.ranks]
    if gpus and "cpu" in devices:
        gpus = [rank.gpu.index if rank.gpu else None for rank in pool.ranks]
        lines.append(f"device = torch.device({devices!r}[rank])")
        lines.append('if device.type == "cuda":\n    torch.cuda.set_device(device)')
    elif any(device != "cpu" for device in devices):
        lines.append('device = torch.device("cuda", local_rank % torch.cuda.device_count())')
        lines.append("torch.cuda.set_device(device)")
    else:
        lines.append('device = torch.device("cpu")')
    lines.append(f"gpu_id = {gpus!r}[rank % {len(gpus)}]" if gpus else "gpu_id = None")
    text = ""
    if pool.backend != "none":
        bound = ", device_id=device" if "nccl" in pool.backend else ""
        lines.append(f'dist.init_process_group("{pool.backend}"{bound})')
        text = _STANDING_GROUP if names & _GROUP else ""
    return "\n".join([*lines, text]) + (_SHOW if "_show" in names else "")


def _translate(cell: RanCell, world_size: int) -> _Cell:
    """Return one cell as Python, or as comments."""
    if cell.why:
        return _Cell(_commented(cell.code), [cell.why])
    if magic := _CELL_MAGIC.match(cell.code):
        return _Cell(_commented(cell.code), [magic[0].strip()])
    code, missing = _without_magics(cell.code)
    try:
        compiled = compile(code, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError):
        return _Cell(_commented(cell.code), ["Not valid Python."])
    if compiled.co_flags & inspect.CO_COROUTINE:
        return _Cell(_commented(cell.code), ["Top-level await."])
    done = _Cell(code, missing)
    tree = ast.parse(code)
    done.names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    done.missing += [f"A script has no `{name}`." for name in sorted(done.names & _ONLY_IN_IPYTHON)]
    done.names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    edits: list[tuple[ast.stmt | ast.expr, str]] = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            done.futures.append(ast.unparse(statement))
            edits.append((statement, "pass  # this import is at the top"))
    last = tree.body[-1] if tree.body else None
    if cell.has_value and isinstance(last, ast.Expr):
        edits.append((last.value, "_show(({}))"))
        done.names.add("_show")
    lines = _edited(code, edits)
    if len(cell.ranks) < world_size:
        ranks = ", ".join(map(str, cell.ranks)) + ("," if len(cell.ranks) == 1 else "")
        lines = [f"if rank in ({ranks}):", *_indented(lines)]
        if not tree.body:
            lines.append("    pass")
    done.text = "\n".join(lines).rstrip() + "\n"
    return done


def _without_magics(code: str) -> tuple[str, list[str]]:
    """Turn IPython's own lines into comments; return code and these lines."""
    syntax = TransformerManager()
    missing: list[str] = []
    lines = [f"{line}\n" for line in code.split("\n")]
    while True:
        found, after = syntax.do_one_token_transform(lines)
        if not found:
            return "".join(lines)[:-1], missing
        # IPython has replaced one or more lines that belong together by one.
        start = next(n for n, line in enumerate(after) if line != lines[n])
        end = start + 1 + len(lines) - len(after)
        magic, python = "".join(lines[start:end]), after[start]
        if timed := _TIMED.match(magic):
            python = timed[1] + timed[2]
        elif magic.strip() == "%%time":
            python = "\n"
        elif "get_ipython()" in python:
            text = " ".join(map(str.strip, lines[start:end]))
            python = f"{magic[: len(magic) - len(magic.lstrip())]}pass  # {text}\n"
            missing.append(text)
        lines[start:end] = [python]


def _commented(code: str) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in code.splitlines())


def _edited(code: str, edits: Iterable[tuple[ast.stmt | ast.expr, str]]) -> list[str]:
    """Replace parts of the code; ``{}`` stands for what was there."""
    lines = [line.encode() for line in code.split("\n")]
    for node, text in sorted(edits, key=lambda edit: (-edit[0].lineno, -edit[0].col_offset)):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        inside = lines[first : last + 1]
        inside[-1] = inside[-1][: node.end_col_offset]
        inside[0] = inside[0][node.col_offset :]
        new = text.replace("{}", b"\n".join(inside).decode())
        lines[first : last + 1] = (before + new.encode() + after).split(b"\n")
    return [line.decode() for line in lines]


def _indented(lines: list[str]) -> Iterator[str]:
    """Indent code, but not what is inside of a string."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        ):
            inside.update(range(node.lineno, node.end_lineno or node.lineno))
    for index, line in enumerate(lines):
        yield line if index in inside or not line.strip() else f"    {line}"
