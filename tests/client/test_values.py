"""Values arrive as they were, and large ones without a copy."""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from jupyter_dist_server.client.values.splitting import concatenate, split
from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.pickling import (
    Packed,
    SharedMemory,
    open_shared,
    own,
    pack,
    read_shared,
    unpack,
    write_shared,
)

from ..waiting import wait_for

if TYPE_CHECKING:
    import torch

linux = pytest.mark.skipif(not SharedMemory.possible, reason="has no memfd")


def inline(packed: Packed) -> Any:
    return unpack(own(packed.buffers))


def shared(packed: Packed) -> Any:
    with SharedMemory() as memory:
        write_shared(memory.descriptor, packed.buffers)
        descriptor = open_shared(memory.address)
    assert descriptor is not None
    try:
        return unpack(read_shared(descriptor, packed.sizes))
    finally:
        os.close(descriptor)


ways = pytest.mark.parametrize("way", [inline, pytest.param(shared, marks=linux)])
Way = Callable[[Packed], Any]


@pytest.fixture(scope="module", autouse=True)
def import_torch() -> None:
    """Import torch when the tests begin: each worker of pytest collects them, and one runs them."""
    globals()["torch"] = importlib.import_module("torch")


def base() -> torch.Tensor:
    return torch.arange(24.0).reshape(4, 6)


TENSORS = {
    "plain": lambda: base(),
    "large": lambda: torch.randn(3_000_000),
    "part": lambda: base()[1:3],
    "transposed": lambda: base().T,
    "strided": lambda: base()[:, ::2],
    "expanded": lambda: torch.ones(3, 1).expand(3, 5),
    "empty": lambda: torch.empty(0, 3),
    "scalar": lambda: torch.tensor(2.5),
    "bfloat16": lambda: torch.randn(9000).bfloat16(),
    "float8": lambda: torch.randn(9000).to(torch.float8_e4m3fn),
    "complex": lambda: torch.randn(9000, dtype=torch.complex64),
    "conjugate": lambda: torch.randn(9, dtype=torch.complex64).conj(),
    "bool": lambda: torch.rand(9000) > 0.5,
    "gradient": lambda: torch.randn(9000, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.randn(9000)),
    "sparse": lambda: torch.eye(80).to_sparse(),
    "sparse_csr": lambda: torch.eye(80).to_sparse_csr(),
}


@ways
@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_arrives_as_it_was(name: str, way: Way) -> None:
    sent = TENSORS[name]()
    got = way(pack(sent, [sent]))
    assert type(got) is type(sent) and got.dtype == sent.dtype and got.layout == sent.layout
    assert got.requires_grad == sent.requires_grad
    if sent.is_sparse or sent.layout is torch.sparse_csr:
        assert torch.equal(got.to_dense(), sent.to_dense())
    elif name == "float8":
        assert torch.equal(got.float(), sent.float())
    else:
        assert torch.equal(got, sent)


ARRAYS = {
    "plain": np.arange(24.0).reshape(4, 6),
    "large": np.random.rand(3_000_000),
    "fortran": np.asfortranarray(np.random.rand(100, 100)),
    "strided": np.random.rand(100, 100)[::2, ::3],
    "empty": np.empty((0, 3)),
    "scalar": np.array(2.5),
    "structured": np.zeros(3000, dtype=[("a", "i4"), ("b", "f8")]),
    "objects": np.array([1, "two", None], dtype=object),
}


@ways
@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_arrives_as_it_was_and_can_be_written_to(name: str, way: Way) -> None:
    sent = ARRAYS[name]
    got = way(pack({"nested": [sent]}))["nested"][0]
    assert got.dtype == sent.dtype and got.flags.f_contiguous == sent.flags.f_contiguous
    assert got.tolist() == sent.tolist()
    assert got.flags.writeable


@ways
def test_a_model_and_its_optimizer_arrive_and_go_on_learning(way: Way) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(200, 200), torch.nn.Linear(200, 1))
    model[1].bias = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam(model.parameters())
    got, its_optimizer = way(pack((model, optimizer)))
    assert its_optimizer.param_groups[0]["params"][0] is got[0].weight
    before = got[0].weight.clone()
    got(torch.ones(2, 200)).sum().backward()
    its_optimizer.step()
    assert not torch.equal(got[0].weight, before)
    assert torch.equal(model[0].weight, before), "what was sent is not what arrived"


@ways
def test_views_of_one_tensor_stay_views_of_one_tensor(way: Way) -> None:
    base = torch.zeros(40_000)
    got = way(pack({"all": base, "rest": base[10:]}))
    got["all"][10] = 7
    assert got["rest"][0] == 7 and base[10] == 0


def test_of_a_view_only_what_it_shows_is_sent() -> None:
    base = torch.zeros(1_000_000)
    part = base[:100]
    assert sum(pack(part, [part]).sizes) < 2000
    assert sum(pack({"part": part}, [part]).sizes) < 2000


def address(buffer: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def test_packing_copies_nothing() -> None:
    tensor, array = torch.zeros(10_000).bfloat16(), np.zeros(10_000)
    packed = pack([tensor, array])
    assert [address(b) for b in packed.buffers[1:]] == [tensor.data_ptr(), array.ctypes.data]
    assert packed.sizes[1:] == [20_000, 80_000]


@linux
def test_each_receiver_has_the_value_for_itself() -> None:
    packed = pack(np.zeros(5_000_000))
    with SharedMemory() as memory:
        write_shared(memory.descriptor, packed.buffers)
        one, other = (unpack(read_shared(memory.descriptor, packed.sizes)) for _ in range(2))
    one[:] = 1
    assert other.sum() == 0


@linux
def test_mapped_memory_goes_with_the_last_array() -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    got = shared(pack(np.zeros(5_000_000)))
    part = got[10:20]
    del got
    assert part.sum() == 0
    del part
    # Threads of other tests may open and close some meanwhile.
    wait_for(lambda: len(os.listdir("/proc/self/fd")) <= open_before, "the end of its file")


@linux
def test_memory_that_is_gone_or_somebody_elses_is_not_opened() -> None:
    with SharedMemory() as memory, open(os.devnull) as stranger:
        where = memory.address
        assert open_shared(replace(where, descriptor=stranger.fileno())) is None
        assert open_shared(replace(where, name="jupyter-dist-other")) is None
    assert open_shared(where) is None


@linux
def test_another_process_can_open_it() -> None:
    code = (
        "import sys, os, json\nfrom jupyter_dist_server.common.pickling import open_shared\n"
        "from jupyter_dist_server.common.protocol.ranks.rank_messages import SharedAddress\n"
        "print(os.read(open_shared(SharedAddress(**json.loads(sys.argv[1]))), 5))"
    )
    with SharedMemory() as memory:
        write_shared(memory.descriptor, [memoryview(b"hello")])
        where = msgspec.json.encode(memory.address).decode()
        done = subprocess.run([sys.executable, "-c", code, where], capture_output=True, text=True)
    assert done.stdout.strip() == "b'hello'", done.stderr


def test_functions_travel_with_their_code() -> None:
    offset = 3
    assert inline(pack(lambda x: x + offset))(1) == 4


def test_what_cannot_be_pickled_says_so() -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        pack(threading.Lock())


@pytest.mark.parametrize(
    ("make", "lengths"),
    [
        (lambda: torch.arange(10), [3, 3, 2, 2]),
        (lambda: np.arange(10), [3, 3, 2, 2]),
        (lambda: list(range(10)), [3, 3, 2, 2]),
        (lambda: "ab", [1, 1, 0, 0]),
        (lambda: (), [0, 0, 0, 0]),
    ],
)
def test_a_split_is_even_and_joins_again(make: Callable[[], Any], lengths: list[int]) -> None:
    value = make()
    parts = split("x", value, 4)
    assert [len(part) for part in parts] == lengths
    assert list(concatenate("x", parts)) == list(value)


def test_what_has_no_first_dimension_is_not_split() -> None:
    for value in (3, torch.tensor(1.0), {"a": 1}, {1, 2}):
        with pytest.raises(DistError, match="`x` cannot be split"):
            split("x", value, 2)


@pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:The PyTorch API of nested")
def test_a_tensor_that_torch_cannot_slice_is_not_split() -> None:
    rows = [torch.ones(2), torch.ones(3)]
    for value in (
        torch.eye(4).to_sparse(),
        torch.eye(4).to_sparse_csr(),
        torch.nested.nested_tensor(rows),
        torch.nested.nested_tensor(rows, layout=torch.jagged),
    ):
        with pytest.raises(DistError, match="`x` cannot be split") as caught:
            split("x", value, 2)
        assert "dense tensor" in caught.value.hint


def test_masks_are_split_and_joined_too() -> None:
    value = np.ma.array(range(6), mask=[0, 1, 0, 0, 0, 1])
    parts = split("x", value, 4)
    assert np.ma.getmaskarray(concatenate("x", parts)).tolist() == value.mask.tolist()
    joined = concatenate("x", [np.arange(2), parts[0]])
    assert np.ma.getmaskarray(joined).tolist() == [False, False, False, True]


@pytest.mark.parametrize("labels", [[0.0, 1.0, 2.0, 3.0], [3, 2, 1, 0], list("abcd")])
def test_what_pandas_labels_is_split_by_position(labels: list[Any]) -> None:
    pandas = pytest.importorskip("pandas")
    for value in pandas.Series(range(4), labels), pandas.DataFrame({"n": range(4)}, labels):
        parts = split("x", value, 3)
        assert [list(part.index) for part in parts] == [labels[:2], labels[2:3], labels[3:]]
        assert concatenate("x", parts).equals(value)


def test_values_that_cannot_be_joined_say_so() -> None:
    for values in ([1, 2], [{}, {}], [[1], 2], [torch.tensor(1.0)] * 2):
        with pytest.raises(DistError, match="cannot be concatenated"):
            concatenate("x", values)
