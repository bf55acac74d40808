"""``--notify`` by a URL: real servers hear of a job's end from Apprise."""

from __future__ import annotations

import json
import os
import queue as queues
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.jobs.store.secret_values import MASK

from ..waiting import PATIENCE, wait_for
from .queue_driver import Queue
from .test_secrets import all_said

_heard: queues.Queue[Any] = queues.Queue()


class Hook(BaseHTTPRequestHandler):
    """Keeps what is posted."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        _heard.put((self.path, json.loads(body)))
        self.send_response(200)
        self.end_headers()


class Mail(socketserver.StreamRequestHandler):
    """Keeps a message, by as much of SMTP as it takes."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline().strip().upper():
            if line == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                _heard.put(b"".join(iter(self.rfile.readline, b".\r\n")))
            self.wfile.write(b"221 bye\r\n" if line == b"QUIT" else b"250 ok\r\n")


@contextmanager
def serving(handler: type[socketserver.BaseRequestHandler]) -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_a_web_hook(queue: Queue) -> None:
    with serving(Hook) as port:
        url = f"json://127.0.0.1:{port}/a-secret-token"
        job = queue.submit("-c", "0", "-J", "train", "--notify", url, "sh", "-c", "exit 3")
        path, body = _heard.get(timeout=PATIENCE)
    assert path == "/a-secret-token"
    assert (body["title"], body["type"]) == (f"Job {job} train: FAILED", "failure")
    host = os.uname().nodename
    told = f"FAILED after 0:00, exit code 3, on {host}. It ended with exit code 3."
    assert body["message"].replace("0:01", "0:00") == told
    assert "a-secret-token" not in all_said(queue, job)
    assert queue.show(job)["spec"]["notify"] == f"json://{MASK}"
    found = [path for path in queue.folder.rglob("*") if path.is_file()]
    kept = [path for path in found if b"a-secret-token" in path.read_bytes()]
    assert [path.parent.name for path in kept] == ["secrets"]
    with serving(Hook) as port:
        queue.submit("-c", "0", "--like", job, "--notify", f"json://127.0.0.1:{port}/another")
        assert _heard.get(timeout=PATIENCE)[0] == "/another"
    again = queue.submit("-H", "--like", job)
    assert queue.show(again)["spec"]["notify"] == f"json://{MASK}"
    kept = [path for path in queue.folder.rglob("secrets/*") if url in path.read_text()]
    assert len(kept) == 2, "the same URL"


def test_a_mail_in_a_script(queue: Queue) -> None:
    with serving(Mail) as port:
        url = f"mailto://127.0.0.1:{port}?from=jdist@example.org&to=ann@example.org"
        Path("job.sh").write_text(f"#!/bin/sh\n#JDIST --notify '{url}'\necho done\n")
        job = queue.submit("-c", "0", "job.sh")
        mail = message_from_bytes(_heard.get(timeout=PATIENCE), policy=policy.default)
    assert mail["To"] == "ann@example.org"
    assert mail["Subject"] == f"Job {job} job.sh: COMPLETED"
    (copy,) = Path(queue.show(job)["spec"]["argv"][0]).parent.iterdir()
    assert "example.org" not in copy.read_text()


def test_nobody_hears(queue: Queue) -> None:
    """The job knows nothing of it; the log says so without the URL."""
    with closing(socket.create_server(("127.0.0.1", 0))) as unused:
        port = unused.getsockname()[1]
    url = f"json://127.0.0.1:{port}/a-secret-token"
    job = queue.submit("-c", "0", "--notify", url, "true")
    ended = queue.ended(job)
    assert (ended["state"], ended["detail"]) == ("COMPLETED", "")
    (log,) = queue.folder.glob("jupyter-dist/*/dispatcher.log")
    told = f"Job {job}: --notify failed: nothing was sent to json://{MASK}"
    wait_for(lambda: told in log.read_text(), "the log")
    assert "a-secret-token" not in log.read_text()


@pytest.mark.parametrize("url", ["carrier-pigeon://a-secret-token", "slack://a-secret-token"])
def test_a_url_that_apprise_does_not_know(queue: Queue, url: str) -> None:
    said = queue.run("submit", "--notify", url, "true", code=2)
    assert said.startswith(f"jdist: Apprise does not understand the URL {url.split('://')[0]}://")
    assert "a-secret-token" not in said and len(said.splitlines()) == 1


def test_without_apprise(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    said = queue.run("submit", "--notify", "mailto://ann:x@example.org", "true", code=2)
    assert "pip install 'jupyter-dist-server[notify]'" in said
    queue.ended(queue.submit("-c", "0", "--notify", "true", "true"))
