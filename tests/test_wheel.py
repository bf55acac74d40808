"""The wheel, in an environment of its own: no Node.js, no torch. Runs by `make wheel-test`."""

from __future__ import annotations

import email
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from readme_renderer import markdown

from .built_wheel import CONSTRAINTS, ROOT, build_wheel
from .environment import environment, tagged
from .result import ANSI

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(600)]

PACKAGE = json.loads((ROOT / "package.json").read_text())
VERSION = PACKAGE["version"]
REPOSITORY = PACKAGE["repository"]["url"].removesuffix(".git")
LAB_EXTENSION = "share/jupyter/labextensions/jupyter-dist-server"

# Runs in the clean environment: prints what the cells of a kernel end with.
CELLS = """
import json
from jupyter_client.manager import run_kernel

errors = []
def look(message):
    if message["msg_type"] == "error":
        errors.append(message["content"]["traceback"])

with run_kernel(kernel_name="python3") as client:
    for cell in ("%load_ext jupyter_dist_server", "%dist_init -n 2"):
        reply = client.execute_interactive(cell, output_hook=look, timeout=120)
print(json.dumps({"status": reply["content"]["status"], "errors": errors}))
"""


class Environment:
    """A virtual environment with the wheel and JupyterLab, and nothing else on the path."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.bin = folder / "venv" / "bin"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.env = environment(folder, TMPDIR=str(self.temporary), PATH=str(self.bin))
        subprocess.run([sys.executable, "-m", "venv", self.bin.parent], check=True)
        self.run("pip", "install", "-q", "-c", str(CONSTRAINTS), str(wheel), "jupyterlab")

    def run(self, command: str, *arguments: str) -> str:
        """Run a command of the environment; return all it says, without colours."""
        done = subprocess.run(
            [self.bin / command, *arguments],
            env=self.env,
            cwd=self.temporary,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        return ANSI.sub("", done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel."""
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def source(wheel: Path) -> Path:
    """Return the source distribution, of which the wheel was built."""
    (source,) = wheel.parent.glob("*.tar.gz")
    return source


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """Return what PyPI reads."""
    with zipfile.ZipFile(wheel) as file:
        text = file.read(f"jupyter_dist_server-{VERSION}.dist-info/METADATA").decode()
    return email.message_from_string(text)


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return the clean environment."""
    return Environment(tmp_path_factory.mktemp("clean"), wheel)


def test_the_wheel_holds_all_that_is_needed(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    data = f"jupyter_dist_server-{VERSION}.data/data"
    needed = {
        path.relative_to(ROOT).as_posix() for path in ROOT.glob("jupyter_dist_server/**/*.py")
    }
    needed |= {
        "jupyter_dist_server/py.typed",
        f"jupyter_dist_server-{VERSION}.dist-info/licenses/LICENSE",
        f"{data}/{LAB_EXTENSION}/install.json",
        f"{data}/{LAB_EXTENSION}/package.json",
        f"{data}/{LAB_EXTENSION}/static/style.js",
        f"{data}/{LAB_EXTENSION}/schemas/jupyter-dist-server/plugin.json",
        f"{data}/etc/jupyter/jupyter_server_config.d/jupyter_dist_server.json",
    }
    assert needed <= names
    package = json.loads(zipfile.ZipFile(wheel).read(f"{data}/{LAB_EXTENSION}/package.json"))
    assert f"{data}/{LAB_EXTENSION}/{package['jupyterlab']['_build']['load']}" in names


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    name = f"jupyter_dist_server-{VERSION}"
    assert {path.split("/")[0] for path in names} == {
        "jupyter_dist_server",
        f"{name}.data",
        f"{name}.dist-info",
    }
    parts = {part for name in names for part in name.split("/")}
    assert parts.isdisjoint({"node_modules", "src", "tests", "tools", "ui-tests"})
    assert not [name for name in names if name.endswith((".ts", ".tsx", ".tsbuildinfo"))]


def test_the_source_distribution_has_all_sources_and_no_pictures(source: Path) -> None:
    with tarfile.open(source) as file:
        names = {member.name.partition("/")[2] for member in file if member.isfile()}
    needed = {
        path.relative_to(ROOT).as_posix()
        for folder in ("docs", "examples", "jupyter_dist_server", "schema", "src", "style", "tests")
        for path in ROOT.glob(f"{folder}/**/*.*")
        if path.suffix in {".c", ".css", ".ipynb", ".json", ".md", ".py", ".ts", ".tsx", ".yaml"}
        and "/." not in path.as_posix().removeprefix(ROOT.as_posix())
    }
    at_the_top = {"CHANGELOG.md", "LICENSE", "README.md", "package.json", "yarn.lock"}
    assert needed | at_the_top <= names, sorted((needed | at_the_top) - names)
    outside = ("docs/images/", "ui-tests/", ".github/", "node_modules/")
    assert not [name for name in names if name.startswith(outside)]
    assert {Path(name).suffix for name in names}.isdisjoint({".gif", ".png", ".webp"})
    assert source.stat().st_size < 3_000_000


def test_the_metadata_is_that_of_package_json(metadata: Message) -> None:
    assert metadata["Version"] == VERSION
    assert metadata["Summary"] == PACKAGE["description"]
    assert metadata["Author"] == PACKAGE["author"]
    assert metadata["License-Expression"] == PACKAGE["license"]
    assert sorted(metadata["Keywords"].split(",")) == sorted(PACKAGE["keywords"])
    urls = dict(text.split(", ") for text in metadata.get_all("Project-URL", []))
    assert urls == {
        "Homepage": PACKAGE["homepage"],
        "Bug Tracker": PACKAGE["bugs"]["url"],
        "Repository": PACKAGE["repository"]["url"],
    }
    assert {
        "Environment :: GPU :: NVIDIA CUDA",
        "Framework :: IPython",
        "Framework :: Jupyter :: JupyterLab :: Extensions :: Prebuilt",
        "Typing :: Typed",
    } <= set(metadata.get_all("Classifier", []))
    assert "jupyter-server<3,>=2.14" in metadata.get_all("Requires-Dist", [])


def test_pictures_and_links_of_the_readme_lead_to_the_tag_on_pypi(metadata: Message) -> None:
    page = markdown.render(metadata.get_payload(), variant="GFM")  # as PyPI does
    assert page
    found = re.findall(r'(src|srcset|href)="([^"]*)"', page)
    raw = f"{REPOSITORY.replace('github.com', 'raw.githubusercontent.com')}/v{VERSION}/"
    starts = {"src": raw, "srcset": raw, "href": f"{REPOSITORY}/blob/v{VERSION}/"}
    ours = [
        (kind, url) for kind, url in found if REPOSITORY.removeprefix("https://github.com") in url
    ]
    assert {"src", "href"} <= {kind for kind, _ in ours}
    for kind, url in ours:
        path = url.removeprefix(starts[kind]).partition("#")[0]
        assert (ROOT / path).is_file(), url
    for _, url in set(found) - set(ours):
        assert url.startswith(("https://", "#")), url


def test_a_type_checker_reads_our_types(clean: Environment) -> None:
    code = "import jupyter_dist_server as dist\nreveal_type(dist.current_pool())\ndist.no_such_name"
    python = clean.bin / "python"
    command = [sys.executable, "-m", "mypy", "--python-executable", python, "-c", code]
    env = {name: value for name, value in clean.env.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=env, cwd=clean.temporary, capture_output=True, text=True)
    assert 'Revealed type is "jupyter_dist_server.notebook.python_api.NotebookPool"' in done.stdout
    assert 'Module has no attribute "no_such_name"' in done.stdout
    assert "Found 1 error" in done.stdout, done.stdout


def test_both_extensions_are_enabled_without_nodejs(clean: Environment) -> None:
    assert shutil.which("node", path=clean.env["PATH"]) is None
    servers = clean.run("jupyter", "server", "extension", "list").splitlines()
    ours = [line.split() for line in servers if "jupyter_dist_server" in line]
    assert ["jupyter_dist_server", "enabled"] in ours, servers
    assert any(line[0] == "jupyter_dist_server" and line[-1] == "OK" for line in ours), servers
    (lab,) = [
        line.split()
        for line in clean.run("jupyter", "labextension", "list").splitlines()
        if "jupyter-dist-server" in line
    ]
    assert lab[2:4] == ["enabled", "OK"], lab


def test_importing_needs_no_torch(clean: Environment) -> None:
    code = "import jupyter_dist_server as package, sys; print(package.__file__, *sys.modules)"
    file, *modules = clean.run("python", "-c", code).split()
    assert Path(file).is_relative_to(clean.bin.parent)
    assert "jupyter_server" not in modules
    assert "torch" not in clean.run("pip", "list").split()


def test_missing_torch_is_said_in_two_lines_and_nothing_is_left(clean: Environment) -> None:
    said = json.loads(clean.run("python", "-c", CELLS).splitlines()[-1])
    assert said["status"] == "error"
    (error,) = said["errors"]
    assert len(error) == 2, error
    assert str(clean.bin / "python") in error[0]
    assert f'"{clean.bin / "python"}" -m pip install torch' in error[1]
    assert tagged(clean.env) == []
    assert list(clean.temporary.glob("jdist-*")) == []
