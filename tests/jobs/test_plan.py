"""Which jobs start, and when the others do."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist_server.jobs.schedule.board import JOBS, Content, Posted, _grouped
from jupyter_dist_server.jobs.schedule.order import in_order
from jupyter_dist_server.jobs.schedule.plan import forecast, never, plan
from jupyter_dist_server.jobs.schedule.wants import InUse, Machine, Want

NOW = 1_000_000.0
FOUR = Machine({f"GPU-{n}": 80 * 2**30 for n in range(4)}, cpus=8, memory=64 * 2**30)


def want(id: str, gpus: int = 1, **fields: object) -> Want:
    return Want(id, "ada", NOW, gpus=gpus, **fields)  # type: ignore[arg-type]


def held(id: str, *gpus: int, **fields: object) -> InUse:
    return InUse(id, "bob", frozenset(f"GPU-{n}" for n in gpus), NOW - 60, **fields)  # type: ignore[arg-type]


def test_jobs_start_in_order_on_the_first_gpus() -> None:
    found = plan(FOUR, [], [want("a", 2), want("b"), want("c", 2)], NOW)
    assert found.starts == {"a": ("GPU-0", "GPU-1"), "b": ("GPU-2",)}
    assert found.reason(want("c", 2)) == "Resources"


def test_a_large_job_is_not_starved_by_small_ones_without_limit() -> None:
    running = [held("x", 0, ends_by=NOW + 100), held("y", 1, ends_by=NOW + 50)]
    found = plan(FOUR, running, [want("big", 4), want("small")], NOW)
    assert found.starts == {}
    assert found.head and found.head.start == NOW + 100
    assert found.reason(want("small")) == "Priority"


def test_a_small_job_that_ends_in_time_goes_ahead() -> None:
    running = [held("x", 0, 1, 2, ends_by=NOW + 100)]
    jobs = [want("big", 4), want("long", limit=101.0), want("short", limit=100.0)]
    assert plan(FOUR, running, jobs, NOW).starts == {"short": ("GPU-3",)}


def test_gpus_that_the_head_does_not_need_are_used() -> None:
    running = [held("x", 0, ends_by=NOW + 100)]
    jobs = [want("big", 2, only=frozenset(["GPU-0", "GPU-1"])), want("small", 2)]
    assert plan(FOUR, running, jobs, NOW).starts == {"small": ("GPU-2", "GPU-3")}


def test_gpus_are_kept_for_a_head_with_an_unknown_start_only_after_a_while() -> None:
    running = [held("pool", 0)]
    jobs = [want("big", 4, head_since=NOW - 60), want("small")]
    assert plan(FOUR, running, jobs, NOW).starts.keys() == {"small"}
    jobs[0] = replace(jobs[0], head_since=NOW - 601)
    assert plan(FOUR, running, jobs, NOW).starts == {}


def test_who_does_not_end_when_its_limit_is_over_has_none() -> None:
    """Otherwise GPUs would be kept idle for as long as somebody says that it has just ended."""
    jobs = [want("big", 4), want("small")]
    assert plan(FOUR, [held("ending", 0, ends_by=NOW - 60)], jobs, NOW).starts == {}
    found = plan(FOUR, [held("liar", 0, ends_by=NOW - 600)], jobs, NOW)
    assert found.starts.keys() == {"small"} and found.head and not found.head.certain


def test_gpus_with_a_stranger_on_them_are_left_alone() -> None:
    machine = replace(FOUR, blocked=frozenset(["GPU-0", "GPU-1"]))
    found = plan(machine, [], [want("a", 2)], NOW)
    assert found.starts == {"a": ("GPU-2", "GPU-3")}


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (want("a", 5), "BadConstraints"),
        (want("a", 1, cpus=9), "BadConstraints"),
        (want("a", 1, memory=65 * 2**30), "BadConstraints"),
        (want("a", 1, share=81 * 2**30), "BadConstraints"),
        (want("a", 1, only=frozenset(["GPU-9"])), "ReqNodeNotAvail"),
    ],
)
def test_what_can_never_start_says_so_and_stops_nobody(job: Want, reason: str) -> None:
    found = plan(FOUR, [], [job, want("b")], NOW)
    assert found.reason(job) == reason
    assert found.starts.keys() == {"b"}


def test_a_job_that_shares_no_gpu_starts() -> None:
    """Its GPUs were taken from it by ``jdist update``."""
    assert plan(FOUR, [], [want("a", 0, share=20 * 2**30)], NOW).starts == {"a": ()}
    alone = replace(FOUR, gpus={})
    assert plan(alone, [], [want("a", 0, share=20 * 2**30)], NOW).starts == {"a": ()}


def test_memory_of_shared_gpus_is_summed() -> None:
    machine = replace(FOUR, gpus={"GPU-0": 80 * 2**30})
    jobs = [want(name, share=30 * 2**30) for name in "abc"]
    found = plan(machine, [], jobs, NOW)
    assert found.starts == {"a": ("GPU-0",), "b": ("GPU-0",)}
    assert plan(machine, [held("x", 0)], jobs, NOW).starts == {}


def test_cores_bound_jobs_without_gpus_and_are_kept_for_a_large_one() -> None:
    running = [InUse("x", "ada", cpus=6, since=NOW, ends_by=NOW + 100)]
    jobs = [want("large", 0, cpus=8), want("a", 0, cpus=1), want("b", 0, cpus=1, limit=60.0)]
    assert plan(FOUR, running, jobs, NOW).starts.keys() == {"b"}


def test_no_user_buries_another_and_waiting_wins() -> None:
    many = [Want(f"a{n}", "ada", NOW - 10, gpus=1) for n in range(100)]
    one = Want("b", "bob", NOW, gpus=1)
    order = [entry.id for entry in in_order([], [*many, one], NOW)]
    assert order.index("b") == 1
    holds_all = [InUse("x", "bob", frozenset(FOUR.gpus))]
    order = [entry.id for entry in in_order(holds_all, [*many[:3], one], NOW)]
    assert order[-1] == "b"
    waits = replace(one, queued=NOW - 10 * 3600)
    order = [entry.id for entry in in_order(holds_all, [*many[:3], waits], NOW)]
    assert order[0] == "b"


def test_the_forecast_says_when_and_how_sure() -> None:
    running = [held("x", 0, 1, ends_by=NOW + 100), held("y", 2, 3, ends_by=NOW + 300)]
    jobs = [want("a", 2, limit=50.0), want("b", 4), want("c")]
    found = forecast(FOUR, running, jobs, NOW)
    assert (found["a"].start, found["a"].certain) == (NOW + 100, True)
    assert (found["b"].start, found["b"].certain) == (NOW + 300, True)
    assert not found["c"].certain  # b has no limit


@pytest.mark.parametrize(("limit", "start"), [(600.0, 3600.0), (7200.0, 7200.0)])
def test_a_start_behind_a_stranger_is_expected_also_while_a_job_runs(
    limit: float, start: float
) -> None:
    machine = replace(FOUR, blocked=frozenset(["GPU-3"]))
    found = forecast(machine, [held("x", 0, ends_by=NOW + limit)], [want("all", 4)], NOW)
    assert (found["all"].start, found["all"].certain) == (NOW + start, False)


_jobs = st.lists(
    st.builds(
        Want,
        id=st.uuids().map(str),
        user=st.sampled_from(["ada", "bob"]),
        queued=st.floats(NOW - 1e5, NOW),
        gpus=st.integers(0, 5),
        limit=st.none() | st.floats(1.0, 1e5),
        cpus=st.integers(0, 9),
        share=st.none() | st.integers(1, 90 * 2**30),
    ),
    max_size=12,
)
_held = st.lists(
    st.builds(
        InUse,
        id=st.uuids().map(str),
        user=st.sampled_from(["ada", "cid"]),
        gpus=st.frozensets(st.sampled_from(list(FOUR.gpus)), max_size=1),
        since=st.floats(NOW - 1e5, NOW),
        ends_by=st.none() | st.floats(NOW, NOW + 1e5),
    ),
    max_size=4,
)


@given(_jobs, _held)
def test_a_plan_never_gives_what_is_not_there(jobs: list[Want], running: list[InUse]) -> None:
    ordered = in_order(running, jobs, NOW)
    found = plan(FOUR, running, ordered, NOW)
    assert plan(FOUR, running, ordered, NOW) == found
    by_id = {job.id: job for job in jobs}
    used: dict[str, list[int | None]] = {uuid: [] for uuid in FOUR.gpus}
    for one in running:
        for uuid in one.gpus:
            used[uuid].append(None)
    for id, gpus in found.starts.items():
        assert len(set(gpus)) == by_id[id].gpus
        for uuid in gpus:
            used[uuid].append(by_id[id].share)
    for uuid, shares in used.items():
        given = shares[len([one for one in running if uuid in one.gpus]) :]
        if given:
            assert len(shares) == 1 or None not in shares
            assert sum(share or 0 for share in shares) <= FOUR.gpus[uuid]
    assert sum(by_id[id].cpus for id in found.starts) <= FOUR.cpus


@given(_jobs, _held)
def test_the_head_starts_no_later_than_promised(jobs: list[Want], running: list[InUse]) -> None:
    running = [replace(one, ends_by=one.ends_by or NOW + 500) for one in running]
    jobs = [replace(job, share=None, limit=job.limit or 50.0) for job in jobs]
    found = plan(FOUR, running, jobs, NOW)
    if found.head is None:
        return
    job = next(job for job in jobs if job.id == found.head.id)
    later = [one for one in running if one.end(NOW) > found.head.start]
    for id, gpus in found.starts.items():
        started = next(one for one in jobs if one.id == id)
        end = NOW + (started.limit or math.inf)
        if end > found.head.start:
            later.append(InUse(id, "", frozenset(gpus), NOW, end, cpus=started.cpus))
    assert job.id in plan(FOUR, later, [job], found.head.start).starts


@given(_jobs, _held)
def test_nobody_starves(jobs: list[Want], running: list[InUse]) -> None:
    found = forecast(FOUR, running, jobs, NOW)
    reasons = plan(FOUR, running, jobs, NOW)
    for job in jobs:
        assert job.id in found or reasons.reason(job) == "BadConstraints"


# -- several users, each with what the boards of the others show ----------------------------------

_USERS = ("ada", "bob", "cid")


def _as_shown(wants: list[Want], user: str) -> list[Want]:
    """Return what a user's board shows of an own queue, as others read it."""
    file = f"jobs-{user}.board"
    entries = list(_grouped(sorted(wants, key=lambda want: (-want.priority, want.queued))))
    content = Content(JOBS, 1, sees=sorted(FOUR.gpus), queue=entries)
    copied = msgspec.json.decode(msgspec.json.encode(content), type=Content)
    return list(Posted(file, user, 0, 0, copied).wants)


_queue = st.lists(
    st.builds(
        Want,
        id=st.integers(1, 10**6).map(str),
        user=st.just(""),
        queued=st.sampled_from([NOW - 1e5, NOW - 3600.0, NOW - 60.0, NOW]),
        gpus=st.integers(0, 5),
        limit=st.none() | st.floats(1.0, 1e5),
        cpus=st.integers(0, 3),
        share=st.none() | st.integers(1, 90 * 2**30),
        priority=st.integers(-1, 1),
    ),
    max_size=6,
    unique_by=lambda want: want.id,
)


@given(st.tuples(_queue, _queue, _queue), _held)
def test_all_users_come_to_the_same_plan(
    queues: tuple[list[Want], ...], running: list[InUse]
) -> None:
    """Each knows the own queue, and what the others' boards show: nobody waits for nobody."""
    own = {
        user: [replace(want, user=user) for want in queue]
        for user, queue in zip(_USERS, queues, strict=True)
    }
    starts: list[dict[str, int]] = []
    reserved: set[frozenset[str]] = set()
    for user in _USERS:
        seen = [want for other in _USERS if other != user for want in _as_shown(own[other], other)]
        ordered = in_order(running, [*own[user], *seen], NOW)
        found = plan(FOUR, running, ordered, NOW)
        by_id = {want.id: want for want in ordered}
        starts.append(Counter(f"{by_id[id].user} {gpus}" for id, gpus in found.starts.items()))
        reserved.add(found.kept)
    assert starts[0] == starts[1] == starts[2]
    assert len(reserved) == 1


@given(st.tuples(_queue, _queue), _held)
def test_no_user_starves_beside_another(
    queues: tuple[list[Want], ...], running: list[InUse]
) -> None:
    wants = [
        replace(want, id=f"{user}-{want.id}", user=user)
        for user, queue in zip(_USERS, queues, strict=False)
        for want in queue
        if not never(FOUR, want)
    ]
    ordered = in_order(running, wants, NOW)
    assert sorted(want.id for want in ordered) == sorted(want.id for want in wants)
    assert forecast(FOUR, running, ordered, NOW).keys() == {want.id for want in wants}


@given(_queue.filter(bool), _queue, st.integers(0, 8))
def test_whoever_waited_for_a_day_comes_before_all_that_is_new(
    old: list[Want], new: list[Want], gpus: int
) -> None:
    day_ago = [replace(want, user="ada", queued=NOW - 86400.0, priority=0) for want in old]
    fresh = [replace(want, user="bob", queued=NOW, priority=0) for want in new]
    running = [InUse("x", "ada", frozenset(f"GPU-{n}" for n in range(gpus)))]
    first, *_ = in_order(running, [*fresh, *day_ago], NOW)
    assert first.user == "ada", "then the GPUs of her own entries ahead count, too"
