"""``--notify``: a command in a shell, or a URL such as ``slack://…`` by Apprise, at a job's end."""

from __future__ import annotations

import json
import os
import re
import sys

from ..common.errors import DistError
from ..common.patience import patience
from ..common.processes.python_command import python_command
from ..common.units import write_limit
from .job_command import job_environment
from .store.job import Job
from .store.secret_values import MASK
from .store.states import COMPLETED, FAILURES
from .store.store import Store

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://\S*")
_SENDER = "jupyter_dist_server.jobs.notification"
_LONGEST = 300
"""Characters of a job's detail that are sent."""


def hide_url(notify: str) -> str | None:
    """Return what is shown of a URL, which has passwords and tokens; `None` for a command."""
    found = _URL.fullmatch(notify)
    return f"{found[1]}://{MASK}" if found else None


def check_url(url: str) -> None:
    """Refuse a URL that Apprise does not know."""
    try:
        import apprise  # not above: most jobs do without, and it may not be installed
    except ModuleNotFoundError as error:
        message = "Apprise, which sends notifications, is not installed."
        hint = "Run pip install 'jupyter-dist-server[notify]'."
        raise DistError("apprise_missing", message, hint, "notify") from error
    apprise.logger.disabled = True  # it would log the URL
    if not apprise.Apprise().add(url):
        message = f"Apprise does not understand the URL {hide_url(url)}."
        hint = "Its services and their URLs: https://appriseit.com/services/"
        raise DistError("bad_option", message, hint, "notify")


def notify(store: Store, job: Job) -> None:
    """Notify the user of a job's end; the job's own GPUs are free by now."""
    if not job.spec.notify:
        return
    import logging  # not above: each runner would carry them
    import subprocess

    command, given = ["/bin/sh", "-c", job.spec.notify], ""
    if url := store.secrets(job).notify:
        command, given = python_command(sys.executable, _SENDER), json.dumps(_message(job, url))
    environment = job_environment(job, store) | {
        "JDIST_JOB_LABEL": job.label,
        "JDIST_JOB_STATE": job.state,
        "JDIST_JOB_REASON": job.reason,
        "JDIST_JOB_DETAIL": job.detail,
        "JDIST_JOB_EXIT_CODE": "" if job.exit_code is None else str(job.exit_code),
        "CUDA_VISIBLE_DEVICES": "",
    }
    try:
        subprocess.run(
            command,
            cwd=job.spec.cwd,
            env=environment,
            input=given.encode(),
            timeout=2 * patience.program,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        told = f"nothing was sent to {job.spec.notify}" if url else error
        logging.getLogger(__name__).warning("Job %s: --notify failed: %s", job.label, told)


def _message(job: Job, url: str) -> dict[str, str]:
    """Return what a user reads on a phone."""
    facts = [job.state]
    if job.started and job.ended:
        facts[0] += f" after {write_limit(job.ended - job.started)}"
    if job.exit_code is not None:
        facts.append(f"exit code {job.exit_code}")
    facts.append(f"on {os.uname().nodename}")
    kind = "success" if job.state == COMPLETED else "failure" if job.state in FAILURES else "info"
    return {
        "url": url,
        "title": f"Job {job.label} {job.name}: {job.state}",
        "body": f"{', '.join(facts)}. {job.detail[:_LONGEST]}".rstrip(),
        "kind": kind,
    }


def main() -> None:
    """Send a message from standard input: the URL is in no command, which all users see."""
    import apprise

    message = json.load(sys.stdin)
    sender = apprise.Apprise()
    kind = apprise.NotifyType(message["kind"])
    sent = sender.add(message["url"]) and sender.notify(message["body"], message["title"], kind)
    sys.exit(0 if sent else 1)
