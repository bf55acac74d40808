"""The lines of ``jdist queue``."""

from __future__ import annotations

import json

from ..jobs.queue_driver import Queue


def first_words(queue: Queue, *args: str) -> list[str]:
    return [line.split()[0] for line in queue.run("queue", *args).splitlines()[1:]]


def test_tasks_that_wait_for_the_same_share_a_line(queue: Queue) -> None:
    queue.submit("-H", "--array", "1-9", "true")
    other = queue.submit("-H", "true")
    assert first_words(queue) == ["1_[1-9]", other]
    queue.run("update", "--priority", "5", "1_3")
    queue.run("cancel", "1_7")
    assert first_words(queue) == ["1_3", "1_[1-2,4-6,8-9]", other]
    assert len(first_words(queue, "--array")) == len(first_words(queue, "--start")) == 9
    assert [row["id"] for row in json.loads(queue.run("queue", "--json"))][1] == "1_1"
