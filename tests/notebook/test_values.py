"""Values move between the notebook and its ranks, by magics and in Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..notebook_driver import Notebook
from ..waiting import wait_for

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

SETUP = """
import numpy as np, torch, jupyter_dist_server
pool = jupyter_dist_server.current_pool()
"""
WAIT = """
def wait_for_go():
    import time
    while "go" not in get_ipython().user_ns:
        time.sleep(0.01)
    return get_ipython().user_ns.pop("go")
"""


@pytest.fixture
def pool(ranks: Notebook) -> Notebook:
    """Return a notebook with a pool, and its object by this name."""
    ranks.ok(SETUP)
    return ranks


@pytest.mark.parametrize("items", [10, 10_000, 10_000_000], ids=["inline", "copied", "mapped"])
def test_there_and_back(pool: Notebook, items: int) -> None:
    pool.ok(f"w = torch.arange({items}.0)")
    said = pool.ok("%dist_push w").text
    assert re.fullmatch(r"Pushed `w` \([\d.]+ (B|KiB|MiB)\) to ranks 0-1 in \d+\.\d s\.\n", said)
    pool.ok("%%distributed\nw += rank")
    said = pool.ok("%dist_pull w --rank 1 --as got").text
    assert re.fullmatch(r"Pulled `got` \([^)]+\) from rank 1 in \d+\.\d s\.\n", said)
    pool.ok("assert torch.equal(got, w + 1)\ngot += 1")
    pool.ok("%dist_pull w --ranks all --as both\nassert torch.equal(both[1], both[0] + 1)")


def test_a_pulled_value_keeps_its_name_and_an_expression_is_given_one(pool: Notebook) -> None:
    pool.ok("%%distributed\nloss = rank + 0.5\ndata = {'a b': [rank]}")
    pool.ok("%dist_pull loss --rank 1\nassert loss == 1.5")
    pool.ok('%dist_pull data["a b"][0] --ranks 0,1 --as both\nassert both == [0, 1]')
    assert "Choose a name with --as NAME." in pool.fails("%dist_pull loss + 1")
    assert "“loss +” is not a valid name" in pool.fails("%dist_pull loss + --as x")
    assert "--rank must be one rank" in pool.fails("%dist_pull loss --rank 0,1")
    error = pool.fails("%dist_pull loss --rank 0 --ranks 1")
    assert error.startswith("Choose --rank or --ranks, not both.")
    assert pool.refused("%dist_pull loss --rank 7") == "unknown_rank"


def test_scatter_and_gather(pool: Notebook) -> None:
    pool.ok("x = np.arange(7)\n%dist_scatter x --as mine")
    pool.ok("%dist_gather len(mine) --as sizes\nassert sizes == [4, 3], sizes")
    pool.ok("%dist_gather mine --concat --as y\nassert (y == x).all()")
    pool.ok("%dist_scatter x --ranks 1 --as mine\n%dist_pull mine --rank 1\nassert len(mine) == 7")
    assert "`x` cannot be split: object of type 'int'" in pool.fails("x = 3\n%dist_scatter x")
    pool.ok("%%distributed\nnumber = 3")
    assert pool.refused("%dist_gather number --concat") == "value_not_a_sequence"


def test_several_at_once_and_only_where_asked(pool: Notebook) -> None:
    pool.ok("%%distributed\na = b = 0")
    pool.ok("a, b = 1, 2\n%dist_push a b --ranks 1")
    pool.ok("%dist_gather (a,b) --as both\nassert both == [(0, 0), (1, 2)]")
    assert "--as requires a single name" in pool.fails("%dist_push a b --as c")


def test_expressions_may_have_spaces(pool: Notebook) -> None:
    pool.ok("names = ['a', 'b', 'c']\n%dist_push 1 + 1 --as two --ranks 1")
    pool.ok("%dist_pull two + 1 --rank 1 --as three\nassert three == 3")
    pool.ok("%dist_scatter [n + ' b' for n in names] --as mine")
    pool.ok("%dist_gather mine --as both\nassert both == [['a b', 'b b'], ['c b']], both")
    assert "Use --as NAME." in pool.fails("%dist_scatter names + names")


def test_what_cannot_be_sent_is_named_and_nothing_has_changed(pool: Notebook) -> None:
    pool.ok("%%distributed\na = 'before'")
    error = pool.fails("import threading\na, lock = 1, threading.Lock()\n%dist_push a lock")
    assert error == "`lock` of the notebook cannot be sent: cannot pickle '_thread.lock' object."
    pool.ok("%dist_gather a --as both\nassert both == ['before'] * 2")
    pool.ok("%%rank 1\nimport threading\nlock = threading.Lock()")
    error = pool.fails("%dist_pull lock --rank 1")
    assert error == "`lock` of rank 1 cannot be sent: cannot pickle '_thread.lock' object."


def test_names_that_are_not_there_or_not_ours_to_give(pool: Notebook) -> None:
    pool.ok("%%rank 0\nonly_here = 1")
    assert "Rank 1 has no `only_here`." in pool.fails("%dist_gather only_here")
    assert "Ranks 0-1 have no `nowhere`." in pool.fails("%dist_gather nowhere.x --as x")
    assert "The notebook has no `nowhere`." in pool.fails("%dist_push nowhere")
    error = pool.fails("%dist_pull [].x --as y --rank 1")
    assert "`[].x` failed on rank 1: AttributeError: 'list' object has no attribute" in error
    error = pool.fails("%dist_push pool.world_size --as world_size")
    assert "`world_size` is a reserved variable" in error and "--as NAME" in error
    assert "“1x” is not a valid variable name." in pool.fails("%dist_push pool --as 1x")


def test_values_move_while_a_cell_runs(pool: Notebook) -> None:
    pool.ok(WAIT + "call = pool.run(wait_for_go)")
    pool.ok("%dist_pull rank --rank 1 --as r\nassert r == 1")
    pool.ok("go = 'on'\n%dist_push go\nassert call.result(30) == ['on', 'on']")


def test_without_shared_memory_values_come_within_messages(pool: Notebook) -> None:
    there_and_back = (
        "w = np.arange(2_000_000.0)\n%dist_push w\n%dist_pull w --as got\n"
        "assert (got == w).all()\ngot += 1"
    )
    pool.ok("from jupyter_dist_server.common.pickling import SharedMemory")
    pool.ok("SharedMemory.possible = False")
    try:
        pool.ok(there_and_back)
    finally:
        pool.ok("SharedMemory.possible = True")
    patch = "import jupyter_dist_server.rank.variables.value_handlers as handlers\n"
    pool.ok(f"%%rank 0\n{patch}real, handlers.open_shared = handlers.open_shared, lambda _: None")
    try:
        pool.ok(there_and_back)
    finally:
        pool.ok("%%rank 0\nhandlers.open_shared = real")


def test_a_notebook_without_torch_says_so(pool: Notebook) -> None:
    pool.ok("%%distributed\nw = torch.ones(3)")
    pool.ok("import sys\nkept = {n: sys.modules.pop(n) for n in [*sys.modules] if n == 'torch'}")
    pool.ok("sys.modules['torch'] = None")
    try:
        error = pool.fails("%dist_pull w")
        assert "`w` of rank 0 cannot be read in the notebook: ModuleNotFoundError" in error
        assert error.endswith("Install its modules in the notebook's environment too.")
        pool.ok("%dist_pull w.tolist() --as w\nassert w == [1, 1, 1]")
    finally:
        pool.ok("sys.modules.update(kept)")


def test_a_class_that_a_rank_does_not_know_is_named(pool: Notebook) -> None:
    pool.ok("import sys, types\nsys.modules['only_here'] = m = types.ModuleType('only_here')")
    pool.ok("exec('class C: pass', m.__dict__)\nc = m.C()")
    error = pool.fails("%dist_push c")
    assert "cannot be read on ranks 0-1: ModuleNotFoundError: No module named 'only_here'" in error
    assert "Its modules must be installed there" in error


def test_a_value_that_fails_when_it_is_read_has_no_wrong_hint(pool: Notebook) -> None:
    pool.ok("%%distributed\nddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))")
    error = pool.fails("%dist_pull ddp")
    assert "cannot be read in the notebook: ValueError: Default process group has not" in error
    assert error.endswith(
        "make sure to call init_process_group.\nThe notebook has no process group. "
        "Of a DistributedDataParallel model, pull `ddp.module` or `ddp.state_dict()`."
    )
    pool.ok("%dist_pull ddp.module --as model\nassert model.in_features == 1")
    unreadable = (
        "class C:\n    def __reduce__(self):\n        return exec, (\"raise OSError('no.')\",)"
    )
    there = pool.fails(f"{unreadable}\nc = C()\n%dist_push c")
    assert there == "The value cannot be read on ranks 0-1: OSError: no."
    pool.ok(f"%%distributed\n{unreadable}")
    here = pool.fails("%dist_pull C() --as c")
    assert here == "`C()` of rank 0 cannot be read in the notebook: OSError: no."


def test_an_interrupt_ends_a_transfer_and_the_next_works(pool: Notebook, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    pool.ok(
        "%%distributed\nimport threading\nnever = threading.Event()\n"
        f"def late():\n    open({str(begun)!r}, 'w').close()\n    never.wait()"
    )

    def interrupt() -> None:
        wait_for(begun.exists, "a rank to compute its value")
        pool.interrupt()

    result = pool.run(
        "print('begun')\n%dist_pull late() --as x",
        until=lambda r: "begun" in r.text,
        act=interrupt,
    )
    assert result.status == "error" and "Interrupted: the transfer was cancelled" in result.error
    pool.ok("%dist_pull rank --as r\nassert r == 0")
    pool.ok("%%distributed\nnever.set()")


# -- Python ---------------------------------------------------------------------------------


def test_the_pool_says_what_it_is(pool: Notebook) -> None:
    pool.ok("assert pool.world_size == 2 and pool.ranks == [0, 1]")
    pool.ok("assert pool.devices == ['cpu', 'cpu'] and pool.backend == 'gloo'")
    assert re.match(r"<pool p-\w+: 2 ranks, gloo>", pool.ok("pool").mime("text/plain")[0])
    pool.ok("status = pool.status()\nassert status[1]['rank'] == 1 and status[1]['pid'] > 0")


def test_push_pull_scatter_and_gather_in_python(pool: Notebook) -> None:
    pool.ok("pool.push(a=1, b=torch.ones(2))\nassert pool.pull('a') == 1")
    pool.ok("pool.push({'a': 5}, ranks=1)\nassert pool.pull('a', ranks='all') == [1, 5]")
    pool.ok("assert pool.pull('a', ranks=1) == 5 and pool.pull('a', ranks=[1]) == [5]")
    pool.ok("pool.scatter('part', list('abc'))\nassert pool.gather('part') == [['a', 'b'], ['c']]")
    pool.ok("assert pool.gather('part', concat=True) == list('abc')")
    assert pool.refused("pool.pull('a', ranks=5)") == "unknown_rank"


def test_run_calls_a_function_of_the_notebook_on_the_ranks(pool: Notebook) -> None:
    pool.ok("%%distributed\nmade_in_a_cell = 100")
    result = pool.ok("""
offset = 10
def helper(x):
    return x + offset + rank
def f(x, *, scale):
    print("on a rank")
    t = torch.ones(1)
    dist.all_reduce(t)
    return helper(x) * scale + made_in_a_cell + t.item()
call = pool.run(f, 1, scale=2)
assert call.result() == [124, 126], call.result()
""")
    pool.ok(WAIT + "call = pool.run(wait_for_go)\nassert call.done() is False")
    pool.ok("pool.push(go=1)\ncall.result()")
    assert result.lines[0] == "[0-1] on a rank"
    pool.ok("assert pool.run(lambda: rank, ranks=[1]).result() == [1]")
    pool.ok("assert pool.run(np.add, np.ones(300_000), 1).result()[1].sum() == 600_000")


def test_functions_of_any_kind_find_the_names_of_ranks(pool: Notebook) -> None:
    pool.ok("""
import functools
def logged(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)
    return wrapper
@logged
def decorated(x):
    return x + rank + made_in_a_cell
class Model:
    def step(self, x):
        return decorated(x) if dist.is_initialized() else None
def each(functions):
    return [f(1) for f in functions]
""")
    pool.ok("def wait_for_it():\n    assert wait_for_go() == 1")
    pool.ok(WAIT + "call = pool.run(wait_for_it)")
    pool.ok("calls = [pool.run(exec, 'get_ipython().user_ns[\"made_in_a_cell\"] = 100')]")
    pool.ok("calls += [pool.run(f, 1) for f in (decorated, Model().step)]")
    pool.ok("calls += [pool.run(functools.partial(decorated, 1)), pool.run(each, [decorated])]")
    pool.ok("pool.push(go=1)\nresults = [call.result() for call in calls]")
    pool.ok("assert results[1:] == [[101, 102]] * 3 + [[[101], [102]]], results")
    error = pool.fails("pool.run(functools.partial(decorated, 'x')).result()")
    assert "return x + rank + made_in_a_cell" in error and "return f(*args)" in error, error


def test_a_call_comes_before_the_cells_that_follow(pool: Notebook) -> None:
    pool.ok("def f():\n    import time\n    time.sleep(0.3)\n    get_ipython().user_ns['n'] = 1\n")
    pool.ok("%%distributed\nn = 0")
    pool.ok("offset = 1\ncall = pool.run(f)\n%dist_push offset")
    assert pool.ok("%%distributed\nn").lines == ["[0-1] 1"]


def test_an_error_names_the_rank_and_shows_the_functions_lines(pool: Notebook) -> None:
    error = pool.fails(
        "def f():\n    if rank == 1:\n        raise ValueError('boom')\npool.run(f).result()"
    )
    assert error.startswith("[1] failed:") and "raise ValueError('boom')" in error
    assert "Rank 1 failed with ValueError: boom." in error.splitlines()[-1]
    assert re.search(r"Cell In\[\d+\].* in f\(\)\n", error) and "----> 3 " in error, error
    assert error.count("Cell In[") == 1 and "dist_call" not in error and "hidden" not in error
    error = pool.fails("pool.run(lambda: exec('1 +')).result()")
    assert "SyntaxError: invalid syntax" in error and "dist_call" not in error
    assert "cannot pickle '_thread.lock'" in pool.fails(
        "import threading\npool.run(print, threading.Lock())"
    )


def test_a_call_can_be_cancelled_and_interrupted(pool: Notebook) -> None:
    pool.ok(WAIT + "call = pool.run(wait_for_go)")
    pool.ok("assert call.running() and call.cancel() and call.cancelled() and call.done()")
    pool.ok("done = pool.run(print)\ndone.result()\nassert not done.cancel()")
    assert pool.ok("%%distributed\n'free'").lines == ["[0-1] 'free'"]
    result = pool.run(
        "print('begun')\npool.run(wait_for_go).result()",
        until=lambda r: "begun" in r.text,
        act=pool.interrupt,
    )
    assert result.status == "error" and "KeyboardInterrupt" in result.error
    assert pool.ok("%%distributed\n'free'").lines == ["[0-1] 'free'"]


def test_a_call_that_others_interrupt_fails_like_any_other(pool: Notebook) -> None:
    """A `KeyboardInterrupt` would end an event loop that awaits it."""
    pool.ok(WAIT + "call = pool.run(wait_for_go)")
    pool.ok("%dist_interrupt")
    pool.ok("error = call.exception(timeout=120)\nassert isinstance(error, Exception), error")
    assert "Interrupted" in pool.fails("call.result()").splitlines()[-1]
    assert pool.ok("%%distributed\n'free'").lines == ["[0-1] 'free'"]


def test_a_call_is_told_that_a_rank_was_replaced_and_that_the_other_finished(
    pool: Notebook,
) -> None:
    pool.ok(WAIT + "call = pool.run(wait_for_go)")
    pool.ok("%dist_restart --ranks 1")
    pool.ok("assert not call.done()\npool.push(go=1, ranks=0)")
    assert (
        "Rank 1 was restarted meanwhile." in pool.fails("call.result(timeout=120)").splitlines()[-1]
    )
    pool.ok("%sync")


def test_a_dead_rank_is_named(pool: Notebook) -> None:
    pool.ok("%dist_pull __import__('os').getpid() --rank 1 --as pid")
    pool.ok(WAIT + "call = pool.run(wait_for_go)\nimport os, signal\nos.kill(pid, signal.SIGKILL)")
    pool.run("call.cancel()")
    wait_for(lambda: "died" in pool.run("%dist_push pid").error, "the news of the death")
    error = pool.fails("%dist_gather rank")
    assert "Rank 1 died:" in error and "%dist_restart" in error
    pool.ok("%dist_push pid --ranks 0")
    pool.ok("%dist_restart")
    pool.ok("%dist_push pid")


def test_without_a_pool_there_is_none(pool: Notebook) -> None:
    pool.ok("%dist_shutdown")
    for code in ("%dist_pull x", "pool.push(a=1)", "jupyter_dist_server.current_pool()"):
        assert pool.refused(code) == "no_pool"
    pool.ok("%dist_init -n 2")
