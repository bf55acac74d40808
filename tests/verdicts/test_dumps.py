"""What NCCL's recorder writes is read, too: its form is in torch's `FlightRecorderDetail.hpp`."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.cli.main import main
from jupyter_dist_server.common.protocol.ranks.evidence import (
    CodePlace,
    Evidence,
    Frame,
    Group,
    RankEvidence,
)
from jupyter_dist_server.common.recorded_collectives import (
    collectives_of,
    read_json,
    read_unpickled,
)
from jupyter_dist_server.verdicts.explain_hang import explain_hang

GROUPS = {"0": Group([0, 1])}
SYNCHRONIZES = [Frame("__main__", "<module>", CodePlace("In[9]", 4), "torch.cuda.synchronize")]


def entry(name: str, number: int, state: str, retired: bool, **other: Any) -> dict[str, Any]:
    """Return an entry with all that torch 2.13 writes."""
    return {
        "record_id": number,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "thread_name": "python",
        "thread_id": "1",
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": name,
        "time_created_ns": 1_700_000_000_000_000_000 + number,
        "duration_ms": 0.1,
        "input_sizes": [[2, 3]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[2, 3]],
        "output_dtypes": ["BFloat16"],
        "state": state,
        "time_discovered_started_ns": 1 if state != "scheduled" else 0,
        "time_discovered_completed_ns": 2 if state == "completed" else 0,
        "retired": retired,
        "timeout_ms": 600000,
        "is_p2p": False,
        **other,
    }


def evidence(*ranks: list[dict[str, Any]]) -> Evidence:
    """Return what ranks say whose recorders wrote this; the last one has finished its cell."""
    members = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    status = {"last_enqueued_collective": 1, "last_started_collective": -1}
    about = {
        "version": "2.10",
        "comm_lib_version": "22703",
        "pg_config": members,
        "pg_status": {"0": {**status, "last_completed_collective": -1}},
        "nccl_comm_state": {"0": {"rank": "0", "n_ranks": "2"}},
    }
    dumps = [{**about, "entries": entries} for entries in ranks]
    read = [collectives_of(read_json(json.dumps(dump).encode())) for dump in dumps]
    last = len(ranks) - 1
    return {
        rank: RankEvidence(
            stack=[] if rank == last else SYNCHRONIZES,
            idle=rank == last,
            groups=GROUPS,
            collectives=collectives,
        )
        for rank, collectives in enumerate(read)
    }


def test_a_kernel_that_runs_and_waits() -> None:
    done = entry("nccl:all_reduce", 1, "completed", True)
    verdict = explain_hang(
        evidence([done, entry("nccl:_all_gather_base", 2, "started", False)], [done])
    )
    assert verdict and verdict.sentence == (
        "Rank 0 waits in _all_gather_base #2 (2 × 3 × bfloat16). "
        "Rank 1 never began it: it has finished its cell."
    )


def test_a_kernel_that_is_done_but_not_retired_yet() -> None:
    done = entry("nccl:all_reduce", 1, "completed", False)
    assert explain_hang(evidence([done], [])) is None


def test_backends_of_one_group_count_on_their_own() -> None:
    both = [entry("gloo:barrier", n, "scheduled", True) for n in (1, 2, 3)]
    done = entry("nccl:all_reduce", 1, "completed", True)
    waits = entry("nccl:broadcast", 2, "started", False)
    verdict = explain_hang(evidence([*both, done, waits], [*both, done]))
    assert verdict and verdict.sentence == (
        "Rank 0 waits in broadcast #2 (2 × 3 × bfloat16). "
        "Rank 1 never began it: it has finished its cell."
    )


def test_a_group_that_was_used_long_ago() -> None:
    """Rank 1 has done what rank 0 waits in, and much of another group since."""
    used = {"process_group": ["0", "default_pg"]}
    other = {"process_group": ["1", "undefined"]}
    first = [entry("gloo:barrier", n, "scheduled", True, **used) for n in range(1, 6)]
    since = [entry("gloo:barrier", n, "scheduled", True, **other) for n in range(1, 601)]
    waits = [*first[:4], entry("gloo:barrier", 5, "scheduled", False, **used)]
    verdict = explain_hang(evidence(waits, [*first, *since]))
    assert verdict and verdict.kind == "slow"


def test_a_message() -> None:
    message = entry("nccl:recv 0<-1", 0, "started", False, is_p2p=True, p2p_seq_id=1)
    verdict = explain_hang(evidence([message], []))
    assert verdict and verdict.sentence == (
        "Rank 0 waits in recv from rank 1 (2 × 3 × bfloat16). "
        "Rank 1 is not sending: it has finished its cell."
    )


def batch(number: int, done: bool, *ops: str) -> list[dict[str, Any]]:
    """Return what `batch_isend_irecv` writes: its messages have no events of their own."""
    counts = {"is_p2p": True, "p2p_seq_id": number, "collective_seq_id": 1}
    parts = [entry(f"nccl:{op}", 0, "scheduled", False, **counts) for op in ops]
    nothing = {"input_sizes": [], "input_dtypes": [], "output_sizes": [], "output_dtypes": []}
    state = "completed" if done else "scheduled"
    return [*parts, entry("nccl:coalesced", 0, state, done, **counts, **nothing)]


def test_a_batch_of_messages_that_are_done() -> None:
    """Nobody takes part in the batch of rank 0 but it, as far as rank 1's recorder goes back."""
    assert explain_hang(evidence(batch(1, True, "send 0->1", "recv 0<-1"), [])) is None


def test_a_batch_of_messages_after_another() -> None:
    """What rank 1 has sent in the first batch is not what rank 0 waits for in the second."""
    first = batch(1, True, "send 0->1", "recv 0<-1")
    second = batch(2, False, "send 0->1", "recv 0<-1")
    theirs = batch(1, True, "send 1->0", "recv 1<-0")
    verdict = explain_hang(evidence([*first, *second], theirs))
    assert verdict and verdict.sentence == (
        "Rank 0 waits in send to rank 1 (2 × 3 × bfloat16). "
        "Rank 1 is not receiving: it has finished its cell."
    )


def test_a_batch_that_both_have_begun_is_no_hang() -> None:
    mine = batch(1, False, "send 0->1", "recv 0<-1")
    theirs = batch(1, False, "recv 1<-0", "send 1->0")
    assert explain_hang(evidence(mine, theirs)) is None


def test_collectives_in_one_batch_are_one() -> None:
    """They share a number (`_coalescing_manager`); only their end has events."""
    parts = [entry("nccl:_all_gather_base", 2, "scheduled", False) for _ in range(3)]
    nothing = {"input_sizes": [], "input_dtypes": [], "output_sizes": [], "output_dtypes": []}
    done = [*parts, entry("nccl:coalesced", 2, "completed", True, **nothing)]
    waits = [*parts, entry("nccl:coalesced", 2, "started", False, **nothing)]
    before = [entry("nccl:all_reduce", 1, "completed", True)]
    assert explain_hang(evidence([*before, *done], [*before, *done])) is None
    verdict = explain_hang(evidence([*before, *waits], before))
    assert verdict and verdict.sentence == (
        "Rank 0 waits in _all_gather_base #2 (2 × 3 × bfloat16). "
        "Rank 1 never began it: it has finished its cell."
    )


def test_collectives_in_one_batch_without_their_parts() -> None:
    """Before torch 2.7 only the end of a batch was recorded."""
    nothing = {"input_sizes": [], "input_dtypes": [], "output_sizes": [], "output_dtypes": []}
    waits = entry("nccl:coalesced", 1, "started", False, **nothing)
    verdict = explain_hang(evidence([waits], []))
    assert verdict and verdict.sentence == (
        "Rank 0 waits in coalesced #1 at In[9] line 4. "
        "Rank 1 never began it: it has finished its cell."
    )


def test_a_collective_that_no_gpu_has_begun_yet() -> None:
    """Without TORCH_NCCL_ENABLE_TIMING a kernel is never `started`, only `scheduled`."""
    done = entry("nccl:all_reduce", 1, "completed", True)
    waits = entry("nccl:all_reduce", 2, "scheduled", False)
    verdict = explain_hang(evidence([done, waits], [done]))
    assert verdict and verdict.sentence == (
        "Rank 0 waits in all_reduce #2 (2 × 3 × bfloat16). "
        "Rank 1 never began it: it has finished its cell."
    )


def test_a_collective_that_timed_out_is_waited_for_no_more() -> None:
    """torch: "a retired but not completed event has timed out"."""
    timed_out = entry("nccl:all_reduce", 1, "started", True)
    assert explain_hang(evidence([timed_out], [])) is None


def test_what_was_begun_in_an_earlier_group_is_left_out() -> None:
    dump = read_json(
        json.dumps({"entries": [entry("gloo:barrier", 1, "scheduled", False)]}).encode()
    )
    assert collectives_of(dump, since=1.7e9) and not collectives_of(dump, since=1.7e9 + 1)


def test_a_recorder_that_has_recorded_nothing() -> None:
    """As JSON it leaves the entries out then."""
    assert collectives_of(read_json(b'{"version": "2.10", "pg_config": {}}')) == []


def test_a_pickled_dump() -> None:
    """What is not known is None there, and 0 in JSON; frames are there only."""
    frames = [{"name": "<module>", "filename": "<Cell In[9]>", "line": 4}]
    unknown = {"time_discovered_started_ns": None, "time_discovered_completed_ns": None}
    one = entry("nccl:all_reduce", 1, "scheduled", False, frames=frames, **unknown)
    about = {"version": "2.10", "pg_config": {"0": {"ranks": "[0, 1]"}}, "pg_status": {}}
    (read,) = collectives_of(read_unpickled({**about, "entries": [one]}))
    assert read.place == CodePlace("In[9]", 4) and not read.done


def test_a_pickled_dump_with_frames_of_cpp() -> None:
    """They are there with TORCH_FR_CPP_STACK=1."""
    above = [("c10d::ProcessGroupGloo::allreduce()", "??", 0), ("dispatcher", "offloadstuff.c", 0)]
    frames = [*above, ("step", "/home/ada/train.py", 4), ("_start", "??", 0)]
    named = [dict(zip(("name", "filename", "line"), frame, strict=True)) for frame in frames]
    one = entry("gloo:all_reduce", 1, "scheduled", False, frames=named)
    (read,) = collectives_of(read_unpickled({"version": "2.10", "entries": [one]}))
    assert read.place == CodePlace("train.py", 4)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"entries": [{}]}', b'{"entries": 3}', b"\xff"])
def test_what_is_no_dump_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        read_json(text)


@pytest.mark.parametrize(
    "files, told",
    [
        ({}, "There are no dumps in"),
        ({"rank_0": b"x", "other_1": b"x"}, "There are dumps of several names in"),
        ({"rank_0": b"no pickle"}, "rank_0 is no dump of torch"),
        ({"rank_0": pickle.dumps([1])}, "rank_0 is no dump of torch"),
        ({"rank_0": pickle.dumps(os.getcwd)}, "rank_0 is no dump of torch: it contains posix"),
    ],
)
def test_a_folder_that_has_no_dumps_is_refused(
    tmp_path: Path, files: dict[str, bytes], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert main(["why", "--dumps", str(tmp_path)]) == 2
    assert told in capsys.readouterr().err


def test_dumps_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = entry("nccl:all_reduce", 1, "completed", True)
    about = {"version": "2.10", "pg_config": {"0": {"ranks": "[0, 1]", "desc": "default_pg"}}}
    waits = [done, entry("nccl:_all_gather_base", 2, "started", False)]
    for rank, entries in enumerate([waits, [done]]):
        (tmp_path / f"rank_{rank}").write_bytes(pickle.dumps({**about, "entries": entries}))
    assert main(["why", "--dumps", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        "Rank 0 has begun _all_gather_base #2 (2 × 3 × bfloat16). Rank 1 has not begun it: "
        "what it does cannot be seen (the dump ends with all_reduce #1).\n"
    )
    (tmp_path / "rank_0").write_bytes(pickle.dumps({**about, "entries": [done]}))
    assert main(["why", "--dumps", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "No rank of 2 waits for another.\n"
