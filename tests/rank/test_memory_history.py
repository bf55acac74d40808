"""What is kept when the memory of a GPU is used up; the real thing is in `test_gpu_ranks`."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.protocol.ranks.evidence import CodePlace
from jupyter_dist_server.common.protocol.ranks.memory_messages import Allocated
from jupyter_dist_server.rank.variables.memory import MemoryHistory, allocated_by_line

from ..pool_driver import client_of, request, running, text_of

CELL = {"name": "<module>", "filename": "<Cell In[9]>", "line": 5}
LINEAR = {"name": "forward", "filename": "/v/site-packages/torch/nn/linear.py", "line": 116}
SCRIPT = {"name": "step", "filename": "/home/ada/train.py", "line": 31}


def block(size: int, *frames: dict[str, Any], state: str = "active_allocated") -> dict[str, Any]:
    """Return a block as torch tells it: `torch.cuda.memory._snapshot` says how."""
    return {"size": size, "requested_size": size, "state": state, "frames": [*frames]}


SNAPSHOT = {
    "segments": [
        {"device": 0, "blocks": [block(3, LINEAR, CELL), block(9, CELL, state="inactive")]},
        {"device": 0, "blocks": [block(5, SCRIPT), block(4, CELL), block(100)]},
    ],
    "device_traces": [[]],
}


def test_memory_is_told_by_lines_of_the_users_code() -> None:
    assert allocated_by_line(SNAPSHOT) == [
        Allocated(CodePlace("In[9]", 5), 7),
        Allocated(CodePlace("train.py", 31), 5),
    ]


def cpp(filename: str, line: int = 0) -> dict[str, Any]:
    """Return a frame of C++, as torch has them with ``stacks="all"``, which is its default."""
    return {"name": "at::_ops::mm::call(at::Tensor const&)", "filename": filename, "line": line}


def test_lines_of_cpp_are_not_the_users() -> None:
    """Somebody has called `_record_memory_history()` as torch's documentation says."""
    above = [cpp("??"), cpp("CUDACachingAllocator.cpp"), cpp(""), cpp("thread48.o")]
    python = "/usr/local/src/conda/python-3.10.14"
    between = [cpp(f"{python}/Include/internal/pycore_ceval.h", 46), cpp(f"{python}/call.c", 215)]
    below = [cpp("/usr/src/gcc/libstdc++-v3/src/c++11/thread.cc", 80), cpp("??")]
    blocks = [block(4, *above, LINEAR, *between, CELL, *below), block(100, *above, *below)]
    assert allocated_by_line({"segments": [{"device": 0, "blocks": blocks}]}) == [
        Allocated(CodePlace("In[9]", 5), 4)
    ]


def test_memory_of_a_script_without_suffix() -> None:
    script = {"name": "<module>", "filename": "/home/ada/bin/train-v1.2", "line": 3}
    snapshot = {"segments": [{"device": 0, "blocks": [block(8, cpp("??"), script)]}]}
    assert allocated_by_line(snapshot) == [Allocated(CodePlace("train-v1.2", 3), 8)]


def test_a_snapshot_is_kept_until_another_cell_begins(tmp_path: Path) -> None:
    file = tmp_path / "memory-0.pickle"
    history = MemoryHistory(file)
    assert history.exhausted is None
    history.keep(lambda: SNAPSHOT)
    history.keep(lambda: {})  # too soon after the first
    exhausted = history.exhausted
    assert exhausted
    assert exhausted.snapshot == str(file)
    assert exhausted.by_line[0].nbytes == 7
    assert exhausted.allocated == 112, "of threads without a Python stack, too"
    assert pickle.loads(file.read_bytes()) == SNAPSHOT
    assert [*tmp_path.iterdir()] == [file]
    history.forget()
    assert history.exhausted is None


def test_the_error_of_torch_is_never_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    history = MemoryHistory(tmp_path / "gone" / "memory-0.pickle")
    history.keep(lambda: SNAPSHOT)
    exhausted = history.exhausted
    assert exhausted
    assert (exhausted.snapshot, len(exhausted.by_line)) == ("", 2)
    history.forget()
    history.keep(lambda: {})
    assert history.exhausted
    assert caplog.text.count("could not be kept") == 2


async def test_recording_is_switched_off_by_the_environment(tmp_path: Path) -> None:
    """Torch is told what to do once CUDA is used; here it never is."""
    begin = (
        "from pathlib import Path\n"
        "from jupyter_dist_server.rank.variables.memory import MemoryHistory\n"
        "before = len(torch.cuda._queued_calls)\n"
        "MemoryHistory(Path()).begin()\n"
        "print(len(torch.cuda._queued_calls) - before)"
    )
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        assert await text_of(client, begin) == "1\n"
        off = "import os\nos.environ['JUPYTER_DIST_MEMORY_HISTORY'] = '0'\n"
        assert await text_of(client, off + begin) == "0\n"
