"""Ranks on three unequal nodes, of which one has a wrong clock, by Slurm."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..waiting import wait_for
from .hosts import Hosts
from .lab import Lab
from .slurm_hosts import start_slurm, why_not

WHY_NOT = why_not() or ("" if shutil.which("cc") else "needs a C compiler")
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint('sum', t.item())"
AHEAD = 90
"""Seconds by which the clock of the third host is ahead."""


DDP = """%%distributed
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
x = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
x, y = x[rank::world_size], x.sum(1, keepdim=True)[rank::world_size]
for _ in range(20):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
total = loss.detach().clone()
dist.all_reduce(total)
print(f'loss {total.item() / world_size:.6f}')
"""
REPLAY = """
import json, socket, threading
from pathlib import Path
import zmq
from jupyter_client.session import Session

folder = Path({folder!r})
pool = json.loads((folder / 'pool.json').read_text())
address = json.loads((folder / 'addresses.json').read_text())['3']
rank = address['host'], address['ports']['control']
recorded = []
between = socket.create_server(('127.0.0.1', 0))

def forward():
    client, _ = between.accept()
    with socket.create_connection(rank) as there:
        def back():
            while data := there.recv(65536):
                client.sendall(data)
        threading.Thread(target=back, daemon=True).start()
        while data := client.recv(65536):
            recorded.append(data)
            there.sendall(data)

threading.Thread(target=forward, daemon=True).start()
with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
    dealer.curve_serverkey = pool['keys']['rank_public'].encode()
    dealer.curve_publickey = pool['keys']['client_public'].encode()
    dealer.curve_secretkey = pool['keys']['client_secret'].encode()
    dealer.connect(f'tcp://127.0.0.1:{{between.getsockname()[1]}}')
    session = Session(key=pool['key'].encode())
    session.send(dealer, 'dist_status_request', {{}})
    assert dealer.poll(60_000), 'no answer to who has the keys'
    dealer.linger = 0
sent = b''.join(recorded)
with socket.create_connection(rank) as again:
    again.settimeout(60)
    again.sendall(sent)
    answered = b''
    try:
        while data := again.recv(65536):
            answered += data
    except ConnectionError:
        pass
print('answered', len(answered), 'of', len(sent))
"""
"""Sends a rank on the third host a message by way of a recorder, and then once more."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Return three hosts with Slurm."""
    library = tmp_path_factory.mktemp("skew") / "skew.so"
    source = Path(__file__).with_name("skew.c")
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-nonnull-compare")
    subprocess.run(["cc", *flags, "-o", str(library), str(source), "-ldl"], check=True)
    hosts = Hosts(3)
    try:
        start_slurm(hosts)
        skew = hosts.base / "tmp" / "skew"
        hosts.run(3, "sh", "-c", f"echo {AHEAD} > {skew}")
        hosts.variables |= {"LD_PRELOAD": str(library), "SKEW_FILE": str(skew)}
        yield hosts
    finally:
        hosts.close()


@pytest.fixture(scope="module")
def lab(hosts: Hosts) -> Iterator[Lab]:
    """Return a shell with a pool on all of them."""
    lab = Lab(hosts, "salloc", "--nodes=3", "--quiet")
    try:
        lab.ok("%load_ext jupyter_dist_server")
        lab.ok("%dist_init --map n1,n2,n2,n3")
        yield lab
    finally:
        lab.close()


def test_each_node_knows_its_ranks(lab: Lab) -> None:
    said = lab.ok(
        "%%distributed\nimport os, socket\n"
        "names = 'LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE'\n"
        "print(socket.gethostname(), rank, *[os.environ[name] for name in names.split()])"
    )
    for line in ("n1 0 0 1 0 3", "n2 1 0 2 1 3", "n2 2 1 2 1 3", "n3 3 0 1 2 3"):
        assert line in said
    assert "sum 4.0" in lab.ok(SUM)


def test_times_of_a_node_with_a_wrong_clock_are_corrected(lab: Lab) -> None:
    lab.ok("%%distributed\nimport time\nt = torch.tensor([time.time()], dtype=torch.float64)")
    lab.ok("%dist_pull t --ranks all --as times")
    wrong = float(lab.ok("print((times[3] - times[0]).item())"))
    assert abs(wrong - AHEAD) < AHEAD / 3, "the clock is not wrong"
    said = lab.ok("%dist_status")
    idle = [int(seconds) for seconds in re.findall(r"idle for (-?\d+) s", said)]
    assert len(idle) == 4 and all(-2 <= seconds < AHEAD / 3 for seconds in idle), said


def test_the_group_is_made_again_with_a_wrong_clock(lab: Lab) -> None:
    assert "Interrupted: " in str(lab.stop_endless_cell(rank=3))
    assert "sum 4.0" in lab.ok(SUM)


def test_a_profile_says_who_is_late_in_spite_of_a_wrong_clock(lab: Lab) -> None:
    said = lab.ok(
        "%%distributed --profile\nimport time\nt = torch.ones(1)\nfor _ in range(3):\n"
        "    time.sleep(2 * (rank == 1))\n    dist.all_reduce(t)"
    )
    assert "rank 1 arrives" in said and "rank 3 arrives" not in said, said


def test_a_message_that_is_replayed_is_refused(lab: Lab, hosts: Hosts) -> None:
    (ours,), (theirs,) = hosts.folders(1), hosts.folders(3)
    tmp = hosts.base / "tmp"
    log = f"{tmp}/{theirs}/rank-3.log"
    refused = "Refused a connection without the pool's keys"
    before = hosts.run(3, "cat", log).count(refused)
    said = lab.ok(REPLAY.format(folder=str(tmp / ours)))
    assert "answered" in said
    wait_for(lambda: hosts.run(3, "cat", log).count(refused) > before, "a line in the log")
    assert "sum 4.0" in lab.ok(SUM)


def test_training_over_nodes_has_the_loss_of_training_on_one(lab: Lab) -> None:
    """The last test: it ends the pool."""

    def loss() -> float:
        found = re.search(r"loss ([\d.]+)", lab.ok(DDP))
        assert found
        return float(found[1])

    over_nodes = loss()
    lab.ok("%dist_shutdown")
    lab.ok("%dist_init -n 4 --engine local")
    assert loss() == pytest.approx(over_nodes, abs=1e-5)
