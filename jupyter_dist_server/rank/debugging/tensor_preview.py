"""How the debugger shows tensors: shape, type, device and a few values, without waiting for a GPU.

By itself, it would call `repr`, which copies values from the GPU. That never ends behind a
collective that hangs.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import sys
from typing import Any

from IPython import get_ipython

_PREVIEW = re.compile(r"\w+ (scalar|\d+( × \d+)*) \w+ on \w+")
_SHOWN = 6
"""How many values are shown."""


def preview(tensor: Any) -> str:
    """Return ``tensor 2 × 3 float32 on cpu [0.5, 1.0, …]``."""
    sizes = " × ".join(map(str, tensor.shape)) or "scalar"
    kind = str(tensor.dtype).removeprefix("torch.")
    told = f"{type(tensor).__name__} {sizes} {kind} on {tensor.device}"
    with contextlib.suppress(Exception):  # it has no plain values: sharded, sparse, quantized
        told += _values(tensor)
    return told


def is_preview(text: str) -> bool:
    """Tell whether a text is one of these."""
    return _PREVIEW.match(text) is not None


def _values(tensor: Any) -> str:
    torch = sys.modules["torch"]
    if tensor.device.type == "meta" or not tensor.numel():
        return ""
    if _is_busy(tensor):
        return " (its GPU is busy)"
    with torch.no_grad():
        few = tensor.detach().reshape(-1)[:_SHOWN] if tensor.is_contiguous() else None
        if few is None:  # `reshape` would copy all of it
            few = torch.stack([tensor.detach()[place] for place in _first_places(tensor.shape)])
        shown = [
            f"{value:.4g}" if isinstance(value, float) else str(value) for value in few.tolist()
        ]
    more = ", …" if tensor.numel() > len(shown) else ""
    return f" [{', '.join(shown)}{more}]"


def _is_busy(tensor: Any) -> bool:
    """Tell whether reading values would wait for what its GPU does."""
    cuda = sys.modules["torch"].cuda
    return tensor.device.type == "cuda" and not cuda.current_stream(tensor.device).query()


def rich(value: Any) -> str:
    """Return how Jupyter displays a value, as JSON: its data, and metadata."""
    shell: Any = get_ipython()
    if isinstance(value, sys.modules["torch"].Tensor) and _is_busy(value):
        return json.dumps([{"text/plain": preview(value)}, {}])
    data, metadata = shell.display_formatter.format(value)
    texts = {kind: text for kind, text in data.items() if isinstance(text, (str, dict, list))}
    return json.dumps([texts, {kind: metadata[kind] for kind in metadata if kind in texts}])


def _first_places(shape: Any) -> list[tuple[int, ...]]:
    count = 1
    for size in shape:
        count *= size
    places = []
    for number in range(min(count, _SHOWN)):
        place = []
        for size in reversed(shape):
            number, at = divmod(number, size)
            place.append(at)
        places.append(tuple(reversed(place)))
    return places


def show_previews() -> None:
    """Let pydevd show tensors so, wherever it shows a value."""
    api: Any = importlib.import_module("_pydevd_bundle.pydevd_extension_api")
    extensions: Any = importlib.import_module("_pydevd_bundle.pydevd_extension_utils")
    providers = extensions.extensions_of_type(api.StrPresentationProvider)
    if any(type(one).__module__ == __name__ for one in providers):
        return
    tensor = sys.modules["torch"].Tensor

    class Previews(api.StrPresentationProvider):  # type: ignore[misc]
        """pydevd looks for this form."""

        def can_provide(self, type_object: type, type_name: str) -> bool:
            """Tell whether values of this type are shown by us."""
            return issubclass(type_object, tensor)

        def get_str(self, value: Any) -> str:
            """Return what is shown."""
            return preview(value)

        def get_str_in_context(self, value: Any, context: str) -> str:
            """Return the same at a watch, and below the pointer."""
            return preview(value)

    providers.insert(0, Previews())
