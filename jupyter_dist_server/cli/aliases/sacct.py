"""``sacct``: own jobs that run or have ended."""

from __future__ import annotations

import os
import time

from ...common.errors import DistError
from ...common.users import name_of
from ...jobs.select_jobs import select
from ...jobs.store.store import Store
from ..printing import printable
from ..queue import read_states, refresh
from .foreign_options import Options
from .past_moments import read_past
from .slurm_columns import FIELDS, padded, read_fields

_SACCT = """
-A,--accounts= -L,--allclusters -X,--allocations -a,--allusers -x,--associations= -B,--batch-script
-b,--brief -M,--clusters= -c,--completion -C,--constraints= --delimiter= -D,--duplicates
-E,--endtime= --env-vars --federation -f,--file= -F,--flags= -o,--format= -g,--gid,--group=
--help,-h,--usage -e,--helpformat -j,--jobs= --json --local -l,--long --name= -i,--nnodes=
-I,--ncpus= --noconvert -N,--nodelist= -n,--noheader -p,--parsable -P,--parsable2 -r,--partition=
-q,--qos= -R,--reason= -S,--starttime= -s,--state= -K,--timelimit-max= -k,--timelimit-min=
-T,--truncate -u,--uid,--user= --units= --use-local-uid -v,--verbose -V,--version -W,--wckeys=
--whole-hetjob --yaml
"""
_USUAL = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
_BRIEF = "JobID,State,ExitCode"


def sacct(words: list[str], store: Store) -> int:
    """Print own jobs in a format of Slurm; jobs have no steps here."""
    given = Options("sacct", _SACCT, words)
    given.answer("history", store)
    given.refuse("--json", "--yaml", "-B", "--env-vars")
    if given.has("-e"):
        print(*FIELDS)
        return 0
    fields = read_fields(given.take("-o") or (_BRIEF if given.has("-b") else _USUAL))
    labels, states, names = given.take("-j"), given.take("-s"), given.take("--name")
    user = given.take("-u")
    if user not in (None, name_of(os.getuid()), str(os.getuid())):
        raise DistError("bad_option", f"Of {user}, squeue shows what waits and runs.")
    now = time.time()
    begin, end = given.take("-S") or ("" if labels else "today"), given.take("-E")
    first, last = read_past(begin, now) if begin else 0.0, read_past(end, now) if end else now
    ends_with_mark, is_plain, has_head = given.has("-p"), given.has("-P"), not given.has("-n")
    mark = given.take("--delimiter") or "|"
    given.has("-X")
    given.name_others()
    refresh(store)
    chosen = read_states(states) if states else None
    found = [
        job
        for job in (select(store, labels.split(",")) if labels else store.select())
        if (chosen is None or job.state in chosen)
        and (names is None or job.name in names.split(","))
        and (job.ended or now) >= first
        and job.submitted <= last
    ]
    lines = [[name for name, _ in fields]] if has_head else []
    lines += [[printable(str(FIELDS[name][0](job))) for name, _ in fields] for job in found]
    if is_plain or ends_with_mark:
        for line in lines:
            print(mark.join(line) + mark * ends_with_mark)
        return 0
    pads = [f"{'<' if width < 0 else '>'}{abs(width)}" for _, width in fields]
    if has_head:
        lines.insert(1, ["-" * abs(width) for _, width in fields])
    for line in lines:
        print(*(padded(cell, pad) for cell, pad in zip(line, pads, strict=True)))
    return 0
