"""What is said of variables that are, or are not, the same on all ranks."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_dist_server.common.protocol.ranks.variable_messages import (
    Leaf,
    Variable,
    VariablesReply,
)
from jupyter_dist_server.verdicts.compare_variables import History, compare, sentences
from jupyter_dist_server.verdicts.variable_list import list_variables, variable_rows

RANDOM = "RNG states differ, as they should."


def leaf(path: str, digest: str, **more: Any) -> Leaf:
    fields: dict[str, Any] = {"type": "Tensor", "shape": (2,), "dtype": "float32", "device": "cpu"}
    return Leaf(path=path, expression=path, nbytes=8, digest=digest, **(fields | more))


def reply(rank: int, *leaves: Leaf, **more: Any) -> VariablesReply:
    variable = Variable(name="model", type="Net", leaves=list(leaves))
    fields: dict[str, Any] = {"random": {"torch": f"{rank}"}} | more
    return VariablesReply(status="ok", variables=[variable] if leaves else [], **fields)


def replies(*digests: str, **more: Any) -> dict[int, VariablesReply]:
    """Return ranks whose `w` has these digests."""
    return {
        rank: reply(rank, leaf("model.w", digest), **more) for rank, digest in enumerate(digests)
    }


def said_of(said: dict[int, VariablesReply], **largest: float) -> list[str]:
    return sentences(compare(said), said, {}, {f"model.{k}": v for k, v in largest.items()})


@pytest.mark.parametrize(
    ("digests", "sentence"),
    [
        ("aaaa", "Equal on ranks 0-3."),
        ("aaba", "`model.w` differs on rank 2 (max difference 0.003)."),
        ("abac", "`model.w` has 3 different contents on ranks 0-3 (max difference 0.003)."),
        ("ab", "`model.w` differs between rank 0 and rank 1 (max difference 0.003)."),
        ("aabb", "`model.w` differs between ranks 0-1 and ranks 2-3 (max difference 0.003)."),
        ("abcd", "`model.w` has 4 different contents on ranks 0-3 (max difference 0.003)."),
    ],
)
def test_who_differs(digests: str, sentence: str) -> None:
    assert said_of(replies(*digests), w=0.003) == [sentence, RANDOM]


def test_the_others_are_counted() -> None:
    said = {
        rank: reply(
            rank, *(leaf(f"model.w{n}", "x") for n in range(159)), leaf("model.b", "xxy"[rank])
        )
        for rank in range(3)
    }
    assert said_of(said) == ["`model.b` differs on rank 2.", "159 others are equal.", RANDOM]


def test_forms_differ() -> None:
    said = {0: reply(0, leaf("x", "a", shape=(3,))), 1: reply(1, leaf("x", "b", shape=(4,)))}
    assert said_of(said)[0] == "`x` is of shape (3,) on rank 0 and of shape (4,) on rank 1."
    said = {0: reply(0, leaf("x", "a", text="0.1")), 1: reply(1, leaf("x", "b", text="0.2"))}
    assert said_of(said)[0] == "`x` is 0.1 on rank 0 and 0.2 on rank 1."
    said = {0: reply(0, leaf("x", "a")), 1: reply(1, leaf("x", "b", type="list", shape=None))}
    assert said_of(said)[0] == "`x` is a Tensor on rank 0 and a list on rank 1."
    said = {0: reply(0, leaf("x", "a")), 1: reply(1)}
    assert said_of(said)[0] == "`x` is only on rank 0, not on rank 1."
    said = {0: reply(0, leaf("x", "", type="Loader")), 1: reply(1, leaf("x", "", type="Loader"))}
    assert said_of(said)[0] == "Cannot be compared: `x` (Loader)."


def test_shards_are_compared_with_their_copies() -> None:
    def ranks(*held: tuple[str, str]) -> dict[int, VariablesReply]:
        leaves = [leaf("model.w", digest, shape=(4,), shard=shard) for shard, digest in held]
        return {rank: reply(rank, each) for rank, each in enumerate(leaves)}

    said = said_of(ranks(("[0:2]", "a"), ("[2:4]", "b"), ("[0:2]", "a"), ("[2:4]", "b")))
    assert said[0] == "`model.w` (4,) is sharded: ranks 0,2 [0:2], ranks 1,3 [2:4]."
    said = said_of(ranks(("[0:2]", "a"), ("[2:4]", "b"), ("[0:2]", "a"), ("[2:4]", "c")))
    assert said[0] == "`model.w` has 3 different contents on ranks 0-3."


def test_random_numbers() -> None:
    said = replies("a", "a", random={"torch": "same", "numpy": "same"})
    assert said_of(said)[-1] == (
        "RNG states of numpy and torch are the same on several ranks: "
        "these draw the same random numbers."
    )


def test_random_numbers_of_a_library_that_some_ranks_have() -> None:
    random = [{"torch": f"{r}"} | ({"numpy": f"{r}"} if r == 2 else {}) for r in range(3)]
    said = {rank: reply(rank, leaf("w", "a"), random=states) for rank, states in enumerate(random)}
    assert said_of(said) == ["Equal on ranks 0-2.", RANDOM]


def test_one_rank() -> None:
    assert said_of(replies("a")) == ["There is only one rank to compare."]


def test_what_is_equal_beside_what_cannot_be_compared() -> None:
    said = {
        rank: reply(rank, leaf("own", "", type="Own"), *(leaf(f"w{n}", "a") for n in range(5)))
        for rank in range(2)
    }
    assert said_of(said)[:2] == ["Cannot be compared: `own` (Own).", "5 others are equal."]


def test_many_differences_are_not_all_told() -> None:
    said = {r: reply(r, *(leaf(f"w{n}", f"{r}") for n in range(20))) for r in range(2)}
    lines = said_of(said)
    assert len(lines) == 10 and lines[8] == "12 more differ."


def test_since_which_cell() -> None:
    history = History()

    def since(digests: str, *cells: int, ran: int | None = None) -> dict[str, str]:
        said = replies(*digests, cells=list(cells), ran=len(cells) if ran is None else ran)
        return history.note(compare(said), said)

    assert since("ab", 1) == {}, "nobody knows since when"
    assert since("aa", 1, 2) == {}
    assert since("ab", 1, 2, 5) == {"model.w": "since In[5]"}
    assert since("ab", 1, 2, 5, 6) == {"model.w": "since In[5]"}
    assert since("aa", 1, 2, 5, 6) == {}
    assert since("ab", 1, 2, 5, 6, 7, 9) == {"model.w": "since In[7] or In[9]"}
    assert since("aa", 1) == {}
    assert since("ab", 1, 2, 3, 4, 5, 6) == {"model.w": "since In[2]–In[6]"}
    assert since("aa", 1) == {}
    assert since("ab", 1, 0) == {}, "not a cell of the notebook"
    assert since("aa", 1) == {}
    assert since("ab", 8, 9, ran=200) == {}, "too many cells ago"


def test_table() -> None:
    said = {
        0: reply(0, leaf("model", "a", shard=""), random={}),
        1: reply(1, leaf("model", "b", shape=(3,)), random={}),
        2: reply(2, leaf("model", "b", shape=(3,), device="cuda:2"), random={}),
    }
    assert variable_rows(said)[1:] == [
        ("model", "0", "Net", "(2)", "float32", "cpu", "8 B", "differs"),
        ("model", "1-2", "Net", "(3)", "float32", "cpu,cuda:2", "8 B", "differs"),
    ]


def test_what_was_not_compared_on_all_ranks_is_not_compared() -> None:
    """One rank holds more, so that it has no digests."""

    def variable(*leaves: Leaf, checked: bool) -> VariablesReply:
        one = Variable(name="x", type="list", leaves=list(leaves), checked=checked)
        return VariablesReply(status="ok", variables=[one])

    first, second = leaf("x[0]", "a"), leaf("x[1]", "")
    said = {
        0: variable(first, checked=True),
        1: variable(leaf("x[0]", ""), second, checked=False),
    }
    assert [compared.finding for compared in compare(said)] == ["incomparable", "differs"]
    (listed,) = list_variables(said, {"x[1]": "since In[2]"})
    assert listed.content == "differs"
    assert listed.differences == ["`x[1]` is only on rank 1, not on rank 0 since In[2]."]
    (listed,) = list_variables({0: said[1], 1: said[1]}, {})
    assert (listed.content, listed.nbytes) == ("unchecked", 16)
