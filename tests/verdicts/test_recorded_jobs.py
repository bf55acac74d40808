"""Hangs as NCCL's recorders wrote them down in a job on 16 GPUs, of which some ranks were broken.

The forms, the order of the collectives and who is to blame are those of recordings that come with
NVIDIA's nvidia-resiliency-ext (``tests/attribution/unit/fr_traces``: ``gpu_error_1st``,
``gpu_error_2nd``, ``lock_gil_1st``), whose logs say which ranks were broken. They were written
with torch's version 2.9 of the form, only what was not done. Nothing is copied from there: each is
told here with fewer ranks and other numbers.
"""

from __future__ import annotations

import json
import pickle
from itertools import count
from pathlib import Path
from typing import Any

from jupyter_dist_server.client.scripts.torch_dumps import read_dumps
from jupyter_dist_server.common.protocol.ranks.evidence import Evidence, Group, RankEvidence
from jupyter_dist_server.common.recorded_collectives import collectives_of, read_json
from jupyter_dist_server.verdicts.explain_hang import explain_hang
from jupyter_dist_server.verdicts.verdict import Verdict

from .test_dumps import SYNCHRONIZES, entry

GROUPS = {"35": [0, 1], "39": [0, 2], "42": [1, 3], "72": [2, 3, 4, 5]}
"""Such as 39, a pipeline: names of groups are unique in a job, and not the numbers of `pg_id`."""
MS = 1_000_000
FAILED = "AcceleratorError: CUDA error: an illegal memory access was encountered"


def undone(group: str, op: str, first: int, last: int, began: int) -> list[dict[str, Any]]:
    """Return collectives of a group that wait on the GPU, or for it."""
    about = {"process_group": [group, "undefined"]}
    unknown = {"time_discovered_started_ns": None, "time_discovered_completed_ns": None}
    return [
        entry(f"nccl:{op}", number, "scheduled", False, **about, **unknown, time_created_ns=began)
        for number, began in zip(
            range(first, last + 1), count(1_700_000_000_000_000_000 + began * MS, MS), strict=False
        )
    ]


def message(group: str, op: str, began: int) -> dict[str, Any]:
    """Return a message that was sent or received by itself, and waits."""
    (one,) = undone(group, op, 29, 29, began)
    return {**one, "is_p2p": True, "p2p_seq_id": 7}


def job(ranks: list[list[dict[str, Any]]], **broken: RankEvidence) -> Evidence:
    """Return what ranks say which wait for their GPUs; of those that are broken, what is given."""
    config = {key: {"name": key, "desc": "", "ranks": str(of)} for key, of in GROUPS.items()}
    about = {"version": "2.9", "nccl_version": "2.27.3", "pg_config": config, "pg_status": {}}
    found = {}
    for rank, entries in enumerate(ranks):
        dump = json.dumps({**about, "entries": entries}).encode()
        said = broken.get(f"rank_{rank}", RankEvidence(stack=SYNCHRONIZES))
        groups = {key: Group(of) for key, of in GROUPS.items() if rank in of}
        found[rank] = RankEvidence(
            condition=said.condition,
            stack=said.stack,
            idle=said.idle,
            ended=said.ended,
            groups={} if said.condition == "holds_gil" else groups,
            collectives=collectives_of(read_json(dump)),
        )
    return found


def dumps_say(folder: Path, ranks: list[list[dict[str, Any]]]) -> Verdict:
    """Return the verdict on the dumps that the watchdogs of a job have written."""
    config = {key: {"name": key, "desc": "", "ranks": str(of)} for key, of in GROUPS.items()}
    for rank, entries in enumerate(ranks):
        dump = {"version": "2.9", "pg_config": config, "entries": entries}
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump))
    verdict = explain_hang(read_dumps(folder))
    assert verdict
    return verdict


def test_gpus_that_failed_in_what_the_others_have_done(tmp_path: Path) -> None:
    """They finish nothing more, and were the first to wait: yet the others wait for them."""
    slow = undone("35", "broadcast", 20, 20, began=0)
    waits = undone("72", "all_to_all", 31, 36, began=9)
    failed = undone("72", "all_to_all", 28, 30, began=5)
    ended = RankEvidence(idle=True, ended=FAILED)
    ranks = [slow, slow, waits, failed, waits, failed]
    verdict = explain_hang(job(ranks, rank_3=ended, rank_5=ended))
    assert verdict and verdict.sentence == (
        "Ranks 2,4 wait in all_to_all #31 (2 × 3 × bfloat16, group of ranks 2-5). "
        f"Ranks 3,5 never began it: they ended their cells with {FAILED}."
    )
    assert dumps_say(tmp_path, ranks).sentence == (
        "Ranks 2,4 have begun all_to_all #31 (2 × 3 × bfloat16, group of ranks 2-5). "
        "Ranks 3,5 have not begun it: "
        "what they do cannot be seen (the dump ends with all_to_all #30)."
    )


def test_a_gpu_that_failed_while_another_rank_ran_ahead(tmp_path: Path) -> None:
    """Rank 1 waits for a message of rank 3, which waits for rank 2."""
    receives = [message("42", "recv 0<-1", began=0)]
    waits = undone("72", "all_to_all", 37, 38, began=7)
    behind = undone("72", "all_to_all", 30, 36, began=5)
    ahead = undone("72", "all_to_all", 30, 38, began=6)
    ended = RankEvidence(idle=True, ended=FAILED)
    ranks = [[], receives, behind, waits, ahead, waits]
    verdict = explain_hang(job(ranks, rank_2=ended, rank_4=ended))
    assert verdict and (verdict.sentence, verdict.ranks) == (
        "Ranks 3-5 have begun all_to_all #37 (2 × 3 × bfloat16, group of ranks 2-5). "
        f"Rank 2 never began it: it ended its cell with {FAILED}.",
        [2],
    )
    assert dumps_say(tmp_path, ranks).ranks == [2]


def test_all_that_hold_the_gil_are_named(tmp_path: Path) -> None:
    """Ranks 0 and 1 wait longest, each for one; a message names places in its group."""
    sends = [message("39", "send 0->1", 0)], [message("42", "send 0->1", 0)]
    waits = undone("72", "all_to_all", 31, 33, began=9)
    holds = RankEvidence(condition="holds_gil")
    ranks = [*sends, waits, [], waits, []]
    verdict = explain_hang(job(ranks, rank_3=holds, rank_5=holds))
    assert verdict and (verdict.sentence, verdict.ranks) == (
        "Ranks 2,4 wait in all_to_all #31 (2 × 3 × bfloat16, group of ranks 2-5). "
        "Ranks 3,5 have not begun it: they are in C code that holds the GIL.",
        [3, 5],
    )
    assert dumps_say(tmp_path, ranks).ranks == [3, 5]


def test_a_rank_that_waits_in_what_the_others_have_done_is_slow() -> None:
    """It will begin what they wait in as soon as that is done."""
    behind = undone("72", "broadcast", 30, 30, began=5)
    ahead = undone("72", "broadcast", 31, 31, began=6)
    verdict = explain_hang(job([[], [], behind, ahead, ahead, ahead]))
    assert verdict and (verdict.kind, verdict.sentence) == (
        "slow",
        "Rank 2 waits in broadcast #30 (2 × 3 × bfloat16, group of ranks 2-5) at In[9] line 4. "
        "All of its ranks have begun it: it is slow, not stuck.",
    )
