"""``jdist doctor``: what threatens jobs on this machine, and what to do about it."""

from __future__ import annotations

import argparse
import configparser
import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ..common.errors import DistError
from ..common.files.shared_folder import folder as lease_folder
from ..common.files.shared_folder import owner_notice
from ..common.policy import policy_path, read_policy
from ..common.units import format_gpus
from ..common.users import name_of
from ..gpus.readers.gpu_reader import read_gpus
from ..jobs.file_changes import Wake
from ..jobs.rules.closures import closures
from ..jobs.rules.rules import unknown_names
from ..jobs.start_dispatcher import take_lock
from ..jobs.stopped_processes import stopped_dispatcher, stopped_runners
from ..jobs.store.store import Store
from ..jobs.store.store_folder import filesystem, on_network, other_machines
from .printing import table

_LEAST_SPACE = 200 * 2**20
_ROOT = Path("/")


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    ok: bool
    what: str
    remedy: str = ""


def add_doctor_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist doctor``."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_doctor(options: argparse.Namespace, store: Store) -> int:
    """Print all findings; return 1 if anything threatens jobs."""
    found = [*findings(store)]
    if options.json:
        print(json.dumps([asdict(one) for one in found]))
    else:
        rows = [("ok" if one.ok else "!!", f"{one.what} {one.remedy}".rstrip()) for one in found]
        print(table(("", "FOUND"), rows))
    return 0 if all(one.ok for one in found) else 1


def findings(store: Store) -> Iterator[Finding]:
    """Yield the results of all checks."""
    yield from ends_of_jobs()
    yield from disk(store.folder)
    yield leases()
    yield inotify(store)
    yield dispatcher(store)
    yield from policy()
    for told in stopped_runners(store):
        yield Finding(False, *told)
    seen = read_gpus().inventory
    if missing := unknown_names(seen):
        what = f"The policy names what does not exist: {', '.join(missing)}."
        yield Finding(False, what, f"The administrator can correct {policy_path()}.")
    yield Finding(
        bool(seen.gpus) or not store.select("gpus > 0 AND state = 'PENDING'"),
        f"{format_gpus(len(seen.gpus))}." if seen.gpus else seen.reason or "There is no GPU.",
    )


def ends_of_jobs() -> Iterator[Finding]:
    """Check what may end jobs that are submitted here."""
    yield logout(name_of(os.getuid()))
    yield service(Path("/proc/self/cgroup").read_text() if _ROOT.joinpath("proc").exists() else "")


def logout(user: str, root: Path = _ROOT) -> Finding:
    """Check whether jobs survive a logout: systemd's logind may end them."""
    if not (root / "run/systemd/system").exists():
        return Finding(True, "Jobs go on after you log out: this machine does not use systemd.")
    if (root / "var/lib/systemd/linger" / user).exists():
        return Finding(True, f"Jobs go on after you log out: lingering is on for {user}.")
    if not _kills_user_processes(root, user):
        return Finding(True, "Jobs go on after you log out: KillUserProcesses is off.")
    return Finding(
        False,
        "Jobs end when you log out: KillUserProcesses is on.",
        "Run loginctl enable-linger, or ask the administrator to.",
    )


def _kills_user_processes(root: Path, user: str) -> bool:
    files = [root / "etc/systemd/logind.conf"]
    for folder in ("usr/lib/systemd/logind.conf.d", "etc/systemd/logind.conf.d"):
        files += sorted((root / folder).glob("*.conf"))
    settings = {"killuserprocesses": "no", "killonlyusers": "", "killexcludeusers": "root"}
    for file in files:
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        with contextlib.suppress(OSError, configparser.Error):
            parser.read_string(file.read_text())
            settings |= dict(parser["Login"]) if parser.has_section("Login") else {}
    only = settings["killonlyusers"].split()
    if user in settings["killexcludeusers"].split() or (only and user not in only):
        return False
    return settings["killuserprocesses"].lower() in ("yes", "true", "1", "on")


def service(groups: str) -> Finding:
    """Check by our control group whether jobs that are submitted here end with a service."""
    for line in groups.splitlines():
        names = line.rpartition(":")[2].split("/")
        services = [name for name in names if name.endswith(".service")]
        if services and not services[-1].startswith("user@"):
            return Finding(
                False,
                f"Jobs that are submitted here end when {services[-1]} is stopped.",
                "Submit from a terminal, or give the service KillMode=process.",
            )
    return Finding(True, "Jobs are not part of a service.")


def disk(folder: Path) -> Iterator[Finding]:
    """Check the folder of the queue."""
    kind = filesystem(folder)
    remedy = "Locks cannot be relied on there; set XDG_STATE_HOME to a local folder."
    where = f"The queue is in {folder} ({kind or 'unknown filesystem'})."
    yield Finding(False, where, remedy) if on_network(folder) else Finding(True, where)
    if folder.is_relative_to("/var/tmp") or folder.is_relative_to("/tmp"):
        is_kept_long = folder.is_relative_to("/var/tmp")
        other = "set XDG_STATE_HOME to another local folder."
        line = f"keep it with a line “x {folder}” in /etc/tmpfiles.d, or {other}"
        remedy = line if is_kept_long else other
        yield Finding(is_kept_long, f"{folder} may be cleaned up.", remedy[:1].upper() + remedy[1:])
    if others := other_machines(folder):
        yield Finding(True, f"{others} other machines with this home have queues of their own.")
    free = shutil.disk_usage(folder).free
    enough = free > _LEAST_SPACE
    yield Finding(enough, f"{free >> 20} MiB are free there.", "" if enough else "Free some space.")


def leases() -> Finding:
    """Check the folder of the leases."""
    try:
        notice = owner_notice()
    except DistError as error:
        return Finding(False, error.message, error.hint)
    return Finding(not notice, notice or f"GPU leases are in {lease_folder()}.")


def inotify(store: Store) -> Finding:
    """Check whether inotify can be used."""
    wake = Wake([store.watched])
    wake.close()
    if wake.watches:
        return Finding(True, "Changes are noticed at once (inotify).")
    return Finding(
        False,
        "No inotify instance or watch is left: changes are noticed after up to a second.",
        "Raise fs.inotify.max_user_instances and fs.inotify.max_user_watches with sysctl.",
    )


def dispatcher(store: Store) -> Finding:
    """Check the dispatcher."""
    if told := stopped_dispatcher(store.folder):
        return Finding(False, *told)
    if store.is_idle():
        return Finding(True, "No job waits for the dispatcher.")
    if lock := take_lock(store.folder):
        lock.close()
        remedy = f"See {store.folder / 'dispatcher.log'}, then run jdist queue."
        return Finding(False, "Jobs wait, and no dispatcher runs.", remedy)
    return Finding(True, "The dispatcher runs.")


def policy() -> Iterator[Finding]:
    """Check the administrator's policy, and what is drained and reserved."""
    for wrong in (read_policy()[1], closures()[1]):
        if wrong:
            yield Finding(
                False, wrong, "The administrator can correct it; see docs/administrators.md."
            )
