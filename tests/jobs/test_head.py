"""The first that does not fit keeps its place, whatever other users submit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from jupyter_dist_server.jobs.schedule.board import JOBS, Board, posted, wants_of
from jupyter_dist_server.jobs.schedule.order import in_order
from jupyter_dist_server.jobs.schedule.plan import Plan, never, plan
from jupyter_dist_server.jobs.schedule.trust import Trust
from jupyter_dist_server.jobs.schedule.wants import InUse, Machine, Want

NOW = 1_000_000.0
GPUS = [f"GPU-{n}" for n in range(8)]
MACHINE = Machine(dict.fromkeys(GPUS, 80), cpus=8, memory=64)
_jobs = st.builds(
    Want,
    id=st.just(""),
    user=st.sampled_from(["ada", "bob", "cid"]),
    queued=st.just(NOW),
    gpus=st.integers(0, 8),
    only=st.none() | st.frozensets(st.sampled_from(GPUS), min_size=5),
    limit=st.none() | st.integers(1, 50_000).map(float),
    cpus=st.integers(0, 3),
    memory=st.integers(0, 20),
    share=st.none() | st.integers(1, 80),
    priority=st.integers(-1, 1),
)


@dataclass
class _Promise:
    id: str
    start: float


class Line(RuleBasedStateMachine):
    """Users submit, jobs end by themselves or at their limits, and whoever is first starts."""

    @initialize()
    def begin(self) -> None:
        self.now = NOW
        self.count = 0
        self.held: list[InUse] = []
        self.waiting: list[Want] = []
        self.head_since: dict[str, float] = {}
        self.promise: _Promise | None = None

    @rule(job=_jobs)
    def submit(self, job: Want) -> None:
        self.count += 1
        job = replace(job, id=str(self.count), queued=self.now)
        head = next((one for one in self.waiting if one.id in self.head_since), None)
        if head and head.user == job.user and job.priority > head.priority:
            self.promise = None  # its own user has put something before it
        self.waiting.append(job)
        self.look()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def end_early(self, data: st.DataObject) -> None:
        self.held.remove(data.draw(st.sampled_from(self.held)))
        self.look()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.waiting))
        self.waiting.remove(job)
        if self.promise and self.promise.id == job.id:
            self.promise = None
        self.look()

    @rule(seconds=st.integers(1, 20_000))
    def wait(self, seconds: int) -> None:
        until = self.now + seconds
        while ends := [one.ends_by for one in self.held if (one.ends_by or math.inf) <= until]:
            self.now = min(end for end in ends if end is not None)
            self.held = [one for one in self.held if one.ends_by != self.now]
            self.look()
        self.now = until
        self.look()

    def look(self) -> None:
        """Start what can be started, as dispatchers do; see what the head is promised."""
        while (found := self.plan()).starts:
            for job in [one for one in self.waiting if one.id in found.starts]:
                self.waiting.remove(job)
                self.held.append(
                    InUse(
                        job.id,
                        job.user,
                        frozenset(found.starts[job.id]),
                        self.now,
                        None if job.limit is None else self.now + job.limit,
                        job.cpus,
                        job.memory,
                        job.share,
                    )
                )
        head = found.head
        if self.promise and self.promise.id in {job.id for job in self.waiting}:
            assert head and head.id == self.promise.id, "another one comes first"
            assert head.certain and head.start <= self.promise.start, "it starts later"
        self.head_since = {head.id: self.head_since.get(head.id, self.now)} if head else {}
        self.promise = _Promise(head.id, head.start) if head and head.certain else None

    def plan(self) -> Plan:
        since = self.head_since
        wants = [replace(one, head_since=since.get(one.id, math.inf)) for one in self.waiting]
        possible = [one for one in wants if not never(MACHINE, one)]
        impossible = [one for one in wants if never(MACHINE, one)]  # after all others, as ever
        ordered = in_order(self.held, possible, self.now) + impossible
        return plan(MACHINE, self.held, ordered, self.now)


TestLine = Line.TestCase
TestLine.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)


def test_a_head_keeps_its_place_when_another_user_submits() -> None:
    running = [InUse("x", "ada", frozenset(GPUS[:6]), NOW - 60, NOW + 200)]
    head = Want("ada's", "ada", NOW, gpus=4, limit=5000.0, head_since=NOW)
    later = Want("bob's", "bob", NOW + 1, gpus=3, limit=5000.0)
    assert in_order(running, [head, later], NOW + 1) == [head, later]
    unknown = replace(head, head_since=math.inf)
    assert in_order(running, [unknown, later], NOW + 1) == [later, unknown]


def test_only_the_first_of_a_user_can_be_head() -> None:
    other = Want("b", "bob", NOW, gpus=1)
    first = Want("1", "ada", NOW - 1, gpus=1, priority=1)
    second = Want("2", "ada", NOW - 9, gpus=1, head_since=NOW - 9)
    running = [InUse("x", "ada", frozenset(GPUS[:1]))]
    assert in_order(running, [other, first, second], NOW) == [other, first, second]


@pytest.mark.parametrize("claims", ["one after the other", "all at once"])
def test_who_says_of_all_its_jobs_that_they_are_the_head_comes_first_once(
    leases: Path, claims: str
) -> None:
    """What others say cannot be checked, but whether an entry was the head in a plan of ours."""
    board, trust = Board(JOBS, "store"), Trust()
    mine = Want("mine", "me", 2000.0, gpus=8)

    def look(*said: int) -> str:
        wants = [Want(str(n), "", 3000.0, gpus=8, head_since=0.0) for n in said]
        board.show(wants, GPUS)
        boards = trust.who_counts(posted())
        theirs = [replace(want, user="liar") for want in wants_of(boards)]
        running = [InUse("x", "liar", frozenset(GPUS), 3000.0)]
        found = plan(MACHINE, running, in_order(running, [mine, *theirs], 3600.0), 3600.0)
        trust.note(boards, found)
        assert found.head
        return found.head.id

    said = [(1,), (2,)] if claims == "one after the other" else [(1, 2), (2, 3)]
    assert look(*said[0]) == f"{board.name} 1"
    assert look(*said[0]) == f"{board.name} 1"
    assert look(*said[1]) == "mine"
    assert look(*said[1]) == "mine"
    board.close()
