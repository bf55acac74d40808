"""What tools return: short texts, as an agent pays for each character."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...common.rank_specs import name_ranks
from ...common.units import format_bytes

GROUP = 6_000
"""Characters of the output of ranks that printed the same."""
RESULT = 24_000
"""Characters of a result."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def compact(value: Any) -> str:
    """Return JSON without what is empty."""
    return cut(json.dumps(_without_empty(value), ensure_ascii=False), RESULT)


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {name: _without_empty(one) for name, one in value.items()}
        return {name: one for name, one in kept.items() if one not in (None, "", [], {})}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value


def cut(text: str, most: int, rest: str = "") -> str:
    """Keep the head and the tail of a text; `rest` says how to get what is between."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    left = len(text) - head - tail
    return f"{text[:head]}\n… {left} characters left out{rest} …\n{text[-tail:]}"


def rank_text(outputs: Iterable[Mapping[str, Any]]) -> str:
    """Return the outputs of one rank, as notebooks have them, as text."""
    parts = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            parts.append(output["text"])
        elif kind == "error":
            parts.append("\n".join(output["traceback"]) or f"{output['ename']}: {output['evalue']}")
        else:
            data = output["data"]
            parts.append(str(data.get("text/plain", "")))
            parts += [_image(name, data[name]) for name in data if name.startswith("image/")]
    return _ESCAPES.sub("", "\n".join(part.rstrip("\n") for part in parts if part))


def _image(kind: str, content: object) -> str:
    return f"[{kind}, {format_bytes(len(str(content)) * 3 / 4)}]"


def outputs_text(run: str, statuses: Mapping[int, str], texts: Mapping[int, str]) -> str:
    """Return what ranks printed, once for all that printed the same, errors first."""
    groups: dict[tuple[str, str], list[int]] = {}
    for rank, text in texts.items():
        groups.setdefault((statuses[rank], text), []).append(rank)
    ordered = sorted(groups.items(), key=lambda one: (one[0][0] == "ok", one[1]))
    parts = []
    for (status, text), ranks in ordered:
        rest = f"; cell_output with run {run} and rank {ranks[0]} has them"
        parts.append(f"[{name_ranks(ranks)}: {status}]\n{cut(text, GROUP, rest)}".rstrip())
    return cut("\n".join(parts), RESULT, "; cell_output has them")
