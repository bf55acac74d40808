"""Whatever two processes do with the store in whatever order, it is as the last change left it."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from jupyter_dist_server.jobs.job_end import start_again
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import CONFIGURING, ENDED, MOVES, PENDING, RUNNING
from jupyter_dist_server.jobs.store.store import Store

JOB = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"))
WHO = st.integers(0, 1)
"""One of the two processes."""


class StoreMachine(RuleBasedStateMachine):
    """A model of the store beside the store."""

    jobs = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.stores = [Store(self.folder), Store(self.folder)]
        self.known: dict[int, Job] = {}
        """What each job must be now."""
        self.tokens: dict[str, range] = {}
        self.seen: dict[int, list[str]] = {}
        """The states that each job has had."""
        self.launches = 0

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder)

    @rule(
        target=jobs,
        who=WHO,
        token=st.sampled_from("abcdefgh"),
        held=st.lists(st.booleans(), min_size=1, max_size=3),
    )
    def submit(self, who: int, token: str, held: list[bool]) -> object:
        ids = self.stores[who].submit([replace(JOB, held=one) for one in held], token)
        if token in self.tokens:
            assert ids == self.tokens[token], "a token that is sent twice adds nothing"
            return multiple()
        assert not set(ids) & self.known.keys(), "ids are not used again"
        self.tokens[token] = ids
        for id, one in zip(ids, held, strict=True):
            self.known[id] = replace(JOB, id=id, held=one)
            self.seen[id] = [PENDING]
        return multiple(*ids)

    @rule(id=jobs, who=WHO, choice=st.integers(0, 9), late=st.booleans())
    def move(self, id: int, who: int, choice: int, late: bool) -> None:
        """Move a job as it is now, or as somebody read it before another one moved it."""
        job = self.stores[who].get(id)
        states = [state for state in MOVES[job.state] if state != PENDING]
        if not states:
            return
        state = states[choice % len(states)]
        if late and job.state == PENDING and not job.held:
            assert self._start(self.stores[1 - who], job)
            assert not self.stores[who].move(job, state)
            return
        if state == CONFIGURING:
            assert self._start(self.stores[who], job) != job.held
            return
        done = self.stores[who].move(job, state)
        assert done != (state == RUNNING and job.cancel_at is not None)
        if done:
            self._note(id, state=state)

    @rule(id=jobs, who=WHO)
    def cancel(self, id: int, who: int) -> None:
        if self.stores[who].change([id], f"state NOT IN {ENDED}", cancel_at=1.0):
            self.known[id] = replace(self.known[id], cancel_at=1.0)

    @rule(id=jobs, who=WHO, held=st.booleans())
    def hold(self, id: int, who: int, held: bool) -> None:
        if self.stores[who].change([id], "state = 'PENDING'", held=held):
            self.known[id] = replace(self.known[id], held=held)

    @rule(id=jobs, who=WHO)
    def requeue(self, id: int, who: int) -> None:
        job = self.stores[who].get(id)
        if job.is_ended:
            start_again(self.stores[who], job, "")
            self._note(id, state=PENDING, cancel_at=None)  # none has started

    @rule(who=WHO)
    def reopen(self, who: int) -> None:
        self.stores[who].close()
        self.stores[who] = Store(self.folder)

    @invariant()
    def is_as_left(self) -> None:
        events = self.stores[0].events()
        for store in self.stores:
            for job in store.select():
                known = self.known[job.id]
                for name in ("state", "attempt", "launch", "held", "cancel_at"):
                    assert getattr(job, name) == getattr(known, name), (name, job)
        for id, states in self.seen.items():
            told = [event for event in events if event.job == id]
            assert [event.state for event in told] == states
            assert [event.was for event in told] == [None, *states[:-1]]
        assert len(self.stores[0].select()) == len(self.known), "none is lost"

    def _start(self, store: Store, job: Job) -> bool:
        self.launches += 1
        launch = f"launch {self.launches}"
        if done := store.move(job, CONFIGURING, launch=launch):
            self._note(job.id, state=CONFIGURING, launch=launch)
        return done

    def _note(self, id: int, state: str, **fields: object) -> None:
        self.known[id] = replace(self.known[id], state=state, **fields)  # type: ignore[arg-type]
        self.seen[id].append(state)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(
    max_examples=20,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
