"""Fixtures: a server, notebooks with and without one, and a library like NVIDIA's."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jupyter_dist_server.common.files.shared_folder import FOLDER

from .environment import environment
from .fake_nvml.build import State, build
from .fake_nvml.four_gpus import MACHINE
from .notebook_driver import Notebook, plain_notebook
from .pool_driver import warm_session
from .server_driver import Server

LONGEST = (
    "notebook/test_chaos.py",
    "cluster/test_slurm.py",
    "cluster/test_gpus.py",
    "cluster/test_three_nodes.py",
    "security/test_process_group.py",
    "pools/test_zygote_registry.py",
    "notebook/test_stopped.py",
    "notebook/test_attach.py",
    "test_docs.py",
    "test_examples.py",
    "pools/test_pool.py",
    "notebook/test_as_people_write.py",
    "pools/test_stopped.py",
    "notebook/test_survival.py",
    "libraries/test_pytorch.py",
    "jobs/test_queue_page.py",
)
"""Files that come first, so that none of them is left alone at the end of a parallel run."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest files first.

    Leave out the notebooks with a server, or without, where a module says that it makes no
    difference.
    """

    def is_left_out(item: pytest.Item) -> bool:
        params = getattr(item, "callspec", None) and item.callspec.params  # type: ignore[attr-defined]
        module, kind = getattr(item, "module", None), (params or {}).get("notebook")
        return (kind == "served" and getattr(module, "PLAIN_ONLY", False)) or (
            kind == "plain" and getattr(module, "SERVED_ONLY", False)
        )

    left_out = [item for item in items if is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    folder = Path(__file__).parent
    places = {folder / name: place for place, name in enumerate(LONGEST)}
    kept = [item for item in items if item not in set(left_out)]
    items[:] = sorted(kept, key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session", autouse=True)
def temporary_folder() -> Iterator[Path]:
    """Give this test run a temporary folder of its own, with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="jt-", ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        yield Path(folder)
    tempfile.tempdir = None
    del os.environ["TMPDIR"]


@pytest.fixture(scope="session", autouse=True)
async def zygote(temporary_folder: Path) -> AsyncIterator[None]:
    """Keep a zygote for the pools that tests start in their own process."""
    async with warm_session():
        yield


def may_become_others() -> bool:
    """Tell whether this process has CAP_SETUID, see capabilities(7)."""
    status = Path("/proc/self/status")
    found = status.exists() and re.search(r"CapEff:\s*(\w+)", status.read_text())
    return bool(found and int(found[1], 16) >> 7 & 1)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what only root can do, before any fixture is made."""
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root, for a second user, a namespace or a mount")
    if item.get_closest_marker("stranger") and not may_become_others():
        pytest.skip("needs root, or the capability to become another user")


def pool_folders() -> set[Path]:
    """Return the private folders of all pools of this test run."""
    return set(Path(tempfile.gettempdir()).glob("jdist-*"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a running Jupyter server, the same for all modules; none may end it."""
    before = pool_folders()
    server = Server(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root"))
    yield server
    server.close()
    assert pool_folders() <= before


@pytest.fixture(scope="module", params=["plain", "served"])
def notebook(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    """Return a notebook: once without a server, once with; both must behave the same."""
    before = pool_folders()
    if request.param == "served":
        notebook = _notebook_of(request.getfixturevalue("server"))
    else:
        home = tmp_path_factory.mktemp("home")
        notebook = plain_notebook(environment(home), tmp_path_factory.mktemp("folder"))
    notebook.ok("%load_ext jupyter_dist_server")
    yield notebook
    notebook.close()
    assert pool_folders() <= before


def _notebook_of(server: Server) -> Notebook:
    folder = Path(tempfile.mkdtemp(dir=server.root))
    return server.notebook(folder=folder.name)


@pytest.fixture
def new_notebook(server: Server) -> Iterator[Notebook]:
    """Return a notebook in which no cell has run."""
    notebook = _notebook_of(server)
    yield notebook
    notebook.close()


@pytest.fixture(scope="module")
def ranks(notebook: Notebook) -> Notebook:
    """Return a notebook with a pool of two ranks."""
    notebook.ok("%dist_init -n 2")
    return notebook


@pytest.fixture
def no_pool(notebook: Notebook) -> Notebook:
    """Return a notebook without a pool."""
    notebook.run("%dist_shutdown")  # which keeps torch imported
    return notebook


@pytest.fixture(scope="session")
def fake_nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a library that pynvml takes for NVIDIA's; return the folder that it is in."""
    if sys.platform != "linux" or not shutil.which("cc"):
        pytest.skip("needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    build(folder)
    return folder


@pytest.fixture
def fake_nvml(fake_nvml_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """Return what that library tells to processes that are started from now on."""
    state = State(tmp_path / "nvml-state")
    for name, value in state.environment(fake_nvml_folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FAKE_NVML_LOG", str(state.log))
    return state


@pytest.fixture
def gpus(fake_nvml: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """Return four GPUs, and let this process lease them."""
    fake_nvml.write(**MACHINE)
    monkeypatch.setenv(FOLDER, str(tmp_path / "leases"))
    monkeypatch.setenv("JUPYTER_DIST_TEST", tmp_path.name)
    return fake_nvml


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt this process, also where a shell in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
