"""The small page for people without JupyterLab."""

from __future__ import annotations

import re
from pathlib import Path

from jupyter_dist_server.client.agent_link import look_at_agent
from jupyter_dist_server.common.protocol.sampler_messages import GpuProcess
from jupyter_dist_server.gpus.gpu_state import GpuState
from jupyter_dist_server.gpus.inventory import Inventory
from jupyter_dist_server.server.page import html

from ..fake_nvml.four_gpus import FOUR, NAMES
from ..waiting import PATIENCE, wait_for
from .client import ENDED, Client


def new_session(client: Client, path: str) -> str:
    """Write a notebook and start a kernel for it; return the kernel's id."""
    folder = path.rpartition("/")[0]
    client.raw("PUT", f"api/contents/{folder}", body={"type": "directory"})
    content = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    made = client.raw("PUT", f"api/contents/{path}", body={"type": "notebook", "content": content})
    assert made.status in (200, 201), made.body
    body = {"path": path, "name": "", "type": "notebook", "kernel": {"name": "python3"}}
    return str(client.raw("POST", "api/sessions", body=body).body["kernel"]["id"])


def move(client: Client, old: str, new: str) -> None:
    """Rename a file or a folder, as JupyterLab does."""
    answer = client.raw("PATCH", f"api/contents/{old}", body={"path": new})
    assert answer.status == 200, answer.body


def test_a_pool_goes_with_its_notebook(gpu_client: Client) -> None:
    kernel = new_session(gpu_client, "old/one.ipynb")
    pool = gpu_client.start(kernel_id=kernel, num_ranks=1, gpu_ids=[0])
    assert pool["name"] == "old/one.ipynb"
    move(gpu_client, "old/one.ipynb", "old/two.ipynb")
    gpu_client.wait_until(pool["id"], lambda pool: pool["name"] == "old/two.ipynb")
    move(gpu_client, "old", "new")
    gpu_client.wait_until(pool["id"], lambda pool: pool["name"] == "new/two.ipynb")

    def lessees() -> set[str]:
        return {lease["notebook"] for lease in gpu_client.get("gpus")["leases"].values()}

    # What others see of it, and what the next server reads.
    wait_for(lambda: lessees() == {"new/two.ipynb"}, "the new name")
    said = look_at_agent(Path(pool["folder"]), PATIENCE)
    assert said and said.name == "new/two.ipynb"
    gpu_client.raw("DELETE", f"api/kernels/{kernel}")

    def is_gone() -> bool:  # a pool that ends with its kernel is forgotten then
        answer = gpu_client.call("GET", f"pools/{pool['id']}")
        return answer.status == 404 or answer.body["state"] in ENDED

    wait_for(is_gone, "the end of the pool")


def test_the_page_has_pools_gpus_and_the_queue_and_no_script(gpu_client: Client) -> None:
    kernel = new_session(gpu_client, "page/<b>&.ipynb")
    pool = gpu_client.start(kernel_id=kernel, num_ranks=2, gpu_ids=[2, 3])
    answer = gpu_client.call("GET", "")
    assert (answer.status, answer.headers.get_content_type()) == (200, "text/html")
    page = answer.body
    assert "<script" not in page and "<b>" not in page
    assert "&lt;b&gt;&amp;.ipynb" in page
    text = re.sub("<[^>]*>", " ", page)
    assert "2 ranks · GPUs 2, 3" in text
    assert text.count("NVIDIA H100 80GB HBM3") == 8
    assert "leased by" in text and "Nothing else runs or waits." in text
    # Somebody looks at the GPUs, so they are read.
    wait_for(lambda: "<progress" in gpu_client.call("GET", "").body, "a sample")
    gpu_client.call("DELETE", f"pools/{pool['id']}")
    gpu_client.follow(pool)  # with its kernel, it would be forgotten
    gpu_client.raw("DELETE", f"api/kernels/{kernel}")


def test_the_page_says_why_there_is_no_gpu(client: Client) -> None:
    def page() -> str:
        return str(client.call("GET", "").body)

    wait_for(lambda: "No pool is running." in page(), "the end of the pools of other tests")
    assert "GPU" in page()


def test_the_page_shows_the_rest_where_the_queue_cannot_be_read() -> None:
    page = html([], GpuState(Inventory(reason="No driver.")), {}, [], "The disk <is> full.")
    assert "The disk &lt;is&gt; full." in page and "Nothing else runs" not in page
    assert "No pool is running." in page and "No driver." in page


def test_the_page_leaves_out_the_memory_of_a_gpu_that_uses_the_hosts() -> None:
    assert " B" not in html([], GpuState(FOUR), {}, [])


def test_the_page_says_who_uses_a_gpu_that_nobody_leases() -> None:
    rows = [
        GpuProcess(1, "bob", "<python>", 31 * 2**30, 64),
        GpuProcess(3, "root", "Xorg", 2**20, 0),
    ]
    hidden = [GpuProcess(4711, None, None, 31 * 2**30, None)]
    page = html([], GpuState(FOUR, processes={NAMES[1]: rows, NAMES[2]: hidden}), {}, [])
    first, second = page.partition("GPU 1")[::2]
    assert "not leased" in first
    assert ">used by &lt;python&gt;, pid 1, user bob, 31 GiB<" in second
    said = "used by a process outside this container (pid 4711 on the host), 31 GiB"
    assert f">{said}<" in second
