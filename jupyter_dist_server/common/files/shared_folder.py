"""The folder that all users of a host share, and the files in it that processes lock.

A lock is ``flock``'s: it belongs to an open file, which may be inherited, and ends with the last
process that has it open. See https://man7.org/linux/man-pages/man2/flock.2.html.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import stat
from collections.abc import Container
from pathlib import Path

from ..errors import DistError
from .own_files import OwnFile, own, own_any

FOLDER = "JUPYTER_DIST_LEASES"
"""Environment variable: the folder, the same for all who share the host's GPUs."""
HIDDEN = ".new-"
"""Prefix of a file until it is complete."""
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How files of others are opened: never through a link, never waiting."""


def is_free(file: OwnFile, mode: int) -> bool:
    """Try to lock a file, without waiting; tell whether it is locked now."""
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def folder() -> Path:
    """Return the folder that all users share, and create it if needed.

    Raises `DistError` if it cannot be created, or is no folder.
    """
    path = Path(os.environ.get(FOLDER) or _default())
    try:
        if not path.exists():
            _make(path)
        if not stat.S_ISDIR(
            path.lstat().st_mode
        ):  # nor a link: where all may write, that is a trap
            raise NotADirectoryError(0, "it is not a folder")
    except OSError as error:
        raise unusable(path, error) from error
    return path


def guard(where: Path) -> OwnFile:
    """Open and lock a folder, so that programs that clean up leave it alone.

    See https://www.freedesktop.org/software/systemd/man/latest/tmpfiles.d.html.
    """
    file = own_any(os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    is_free(file, fcntl.LOCK_SH)  # if somebody has locked it alone, it is not cleaned up either
    return file


def owner_notice() -> str:
    """Return a notice if the folder belongs to another user, who can remove any file in it."""
    path = folder()
    owner = path.stat().st_uid
    if owner in (0, os.getuid()):
        return ""
    return (
        f"The lease folder {path} belongs to uid {owner}, who can end other users' GPU leases. "
        "Ask the administrator to make root its owner (see docs/security.md)."
    )


def unusable(path: Path, error: OSError) -> DistError:
    """Return the error for a folder, or a file in it, that this user cannot work with."""
    return DistError(
        "leases_unusable",
        f"The lease folder {path} cannot be used: {error.strerror}.",
        f"All users need write access to it, as to /tmp. To use another folder, set {FOLDER} for "
        "all users and containers that share these GPUs.",
    )


def _default() -> Path:
    # By what it is and not by what we may do: all users must come to the same place.
    lock = Path("/run/lock")
    with contextlib.suppress(FileNotFoundError):
        everybody = stat.S_ISVTX | stat.S_IWOTH
        if lock.stat().st_mode & everybody == everybody:
            return lock / "jupyter-dist"
    return Path("/tmp/jupyter-dist")


def _make(path: Path) -> None:
    # Renamed into place, so that nobody finds it before everybody may write there.
    fresh = path.with_name(f"{HIDDEN}{os.urandom(8).hex()}")
    fresh.mkdir(mode=0o700)
    fresh.chmod(0o1777)
    try:
        fresh.rename(path)
    except OSError:  # somebody else was faster
        fresh.rmdir()


def new_file(where: Path, content: bytes) -> tuple[Path, io.FileIO]:
    """Create a hidden file that all users may read."""
    path = where / f"{HIDDEN}{os.urandom(8).hex()}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = own(os.open(path, flags, 0o600))
    os.fchmod(file.fileno(), 0o644)  # whatever the umask says
    os.write(file.fileno(), content)
    return path, file


def read_file(path: Path, longest: int, owners: Container[int] | None = None) -> bytes | None:
    """Return the beginning of a file; `None` if it is no regular file of one of `owners`.

    Anybody may have put anything there. Raises `OSError` if there is nothing, or it is not ours to
    read.
    """
    descriptor = os.open(path, READ)
    try:
        about = os.fstat(descriptor)
        is_file = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
        if is_file and (owners is None or about.st_uid in owners):
            return os.pread(descriptor, longest, 0)
        return None
    finally:
        os.close(descriptor)


def lock_file(path: Path) -> io.FileIO:
    """Open an empty file that is only there to be locked, and stays for good.

    Raises `DistError` if that is not possible.
    """
    try:
        while True:
            try:
                descriptor = os.open(path, READ)
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    os.close(descriptor)
                    raise OSError(errno.EINVAL, "it is not a regular file")
                return own(descriptor)
            except FileNotFoundError:
                fresh, file = new_file(path.parent, b"")
                with file, contextlib.suppress(FileExistsError):  # then that is the one
                    os.link(fresh, path)
                fresh.unlink()
    except OSError as error:
        raise unusable(path, error) from error
