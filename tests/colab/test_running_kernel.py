"""A kernel with the releases of Colab's and Kaggle's images installs the wheel, and goes on.

Runs by `make test-colab`, which makes that environment.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from ..built_wheel import ROOT, build_wheel
from ..environment import environment
from ..notebook.test_widgets import messages, models, move
from ..notebook_driver import Notebook, plain_notebook

pytestmark = [pytest.mark.colab, pytest.mark.timeout(600)]

IMAGE = ROOT / ".venv-colab"
PYTHON = IMAGE / "bin" / "python"
Versions = dict[str, str]


def versions(listed: str) -> Versions:
    """Return what ``pip list --format json`` says."""
    return {package["name"]: package["version"] for package in json.loads(listed)}


def pip(*arguments: str) -> str:
    """Run the image's pip, and return what it says."""
    command = [PYTHON, "-m", "pip", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def installed() -> Versions:
    """Return the packages of the image."""
    return versions(pip("list", "--format", "json"))


@pytest.fixture(scope="module")
def before() -> Versions:
    """Return the packages of the image, after taking out what an earlier run has added."""
    image = versions((IMAGE / ".installed").read_text())
    if added := installed().keys() - image.keys():
        pip("uninstall", "-q", "-y", *added)
    assert installed() == image
    return image


@pytest.fixture(scope="module")
def kernel(before: Versions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """Return a kernel of the image, whose commands are the image's too."""
    path = os.pathsep.join([str(PYTHON.parent), os.environ["PATH"]])
    env = environment(tmp_path_factory.mktemp("home"), PATH=path)
    notebook = plain_notebook(env, tmp_path_factory.mktemp("folder"), str(PYTHON))
    yield notebook
    notebook.close()


@pytest.fixture(scope="module")
def ranks(kernel: Notebook, before: Versions, tmp_path_factory: pytest.TempPathFactory) -> Notebook:
    """Return the kernel with two ranks, once it has installed the wheel."""
    wheel = build_wheel(tmp_path_factory.mktemp("dist"))
    kernel.ok(f"!pip install -q {wheel}", timeout=300)
    kernel.ok("%load_ext jupyter_dist_server")
    kernel.ok("%dist_init -n 2")
    return kernel


def test_pip_changes_nothing_that_was_there(ranks: Notebook, before: Versions) -> None:
    after = installed()
    assert {name: after.get(name) for name in before} == before
    added = {name: version for name, version in after.items() if name not in before}
    print("pip has added", added)
    assert "jupyter_dist_server" in {name.replace("-", "_") for name in added}


def test_the_ranks_have_the_releases_of_the_image(ranks: Notebook, before: Versions) -> None:
    names = "ipykernel", "IPython", "ipywidgets"
    values = ", ".join(f"{name}.__version__" for name in names)
    said = ranks.ok(f"%%distributed\nimport {', '.join(names)}\nprint({values})").lines
    assert said == ["[0-1] " + " ".join(before[name.lower()] for name in names)]


def test_a_collective(ranks: Notebook) -> None:
    code = "%%distributed\ntotal = torch.tensor(rank + 1)\ndist.all_reduce(total)\ntotal.item()"
    assert ranks.ok(code).lines == ["[0-1] 3"]


def test_a_slider_of_a_rank_follows_its_view(ranks: Notebook) -> None:
    code = "%%rank 1\nimport ipywidgets\nslider = ipywidgets.IntSlider(5)\nslider"
    result = ranks.ok(code)
    (shown,) = models(result)
    assert shown in [m["content"]["comm_id"] for m in messages(result, "comm_open")]
    move(ranks, shown, 42)
    assert ranks.ok("%%rank 1\nslider.value").lines == ["[1]   42"]


def test_a_rank_asks_for_input(ranks: Notebook) -> None:
    result = ranks.ok("%%rank 1\nprint('got', input('name? '))", answers=("bob",))
    assert "[1]   got bob" in result.lines
    assert result.prompts


def test_the_ranks_end(ranks: Notebook) -> None:
    ranks.ok("%dist_shutdown")
