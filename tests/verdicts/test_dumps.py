"""What NCCL's recorder writes is read, too: its form is in torch's `FlightRecorderDetail.hpp`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jupyter_dist_server.common.protocol.ranks.evidence import (
    CodePlace,
    Evidence,
    Frame,
    Group,
    RankEvidence,
)
from jupyter_dist_server.common.recorded_collectives import collectives_of, read_json
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
        "time_discovered_started_ns": 0,
        "time_discovered_completed_ns": 0,
        "retired": retired,
        "timeout_ms": 600000,
        "is_p2p": False,
        **other,
    }


def evidence(*ranks: list[dict[str, Any]]) -> Evidence:
    """Return what ranks say whose recorders wrote this; the last one has finished its cell."""
    dumps = [{"version": "2.10", "pg_config": {}, "entries": entries} for entries in ranks]
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


def test_what_was_begun_in_an_earlier_group_is_left_out() -> None:
    dump = read_json(
        json.dumps({"entries": [entry("gloo:barrier", 1, "scheduled", False)]}).encode()
    )
    assert collectives_of(dump, since=1.7e9) and not collectives_of(dump, since=1.7e9 + 1)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"entries": [{}]}', b'{"entries": 3}', b"\xff"])
def test_what_is_no_dump_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        read_json(text)
