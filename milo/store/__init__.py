"""What is kept: the run directory, the single source of truth about a run.

One process owns a run directory for writing (`RunStore`); any number read it, alive or dead
(`RunReader`, `ReplaySource`). The layout is a public format; `run.json` carries its version.

    run.json               format version, name, time of creation (written last by `create`)
    plan.json              the resolved configuration; never a secret
    journal.jsonl          every change of state, one event a line; the run is the fold of them
    epochs.json            shard -> the newest epoch handed out; older writers are refused
    attempts/
      part-00001.parquet   outcomes, one row an attempt, typed columns (`read_table`)
      pending.jsonl        outcomes that are not yet in a part
      sums.json            what the parts come to; may be lost
    traces/ab/abcd….json.gz   traces by the SHA-256 of their JSON, each stored once
    harnesses.git          a bare git repository: a commit per candidate, a graft is a merge;
                           refs/heads/<island> is the newest, refs/milo/candidates/<id> each one
    sessions.jsonl         model session scope -> trace, for replay of mutators and orchestrator
    calls.jsonl            the ledger of model calls: promised, settled, or left unsettled by a kill
    lock                   who owns the directory: pid, boot, start time of the process

A `.jsonl` line is a JSON object that ends with its own checksum: ``,"crc":"1a2b3c4d"}``, the
CRC-32 of the bytes before it. Journal lines are ``{"kind", "seq", "time", "shard", "epoch",
"group": [i, n], "event", "crc"}``; the n lines of a group were written at once and count only
together. A line that a killed writer left half-written is ignored, said, and cut off by the next
owner; a broken line elsewhere stops the reader with its number.

The store knows nothing of what the records mean beyond `milo.core`, and decides nothing.
"""

from __future__ import annotations

from milo.store.attempts import AttemptTable, read_table
from milo.store.calls import CallLog
from milo.store.codec import decode_plan, encode_plan
from milo.store.files import Disk
from milo.store.harnesses import HarnessStore
from milo.store.layout import FORMAT, RunPaths, diff_plans, find_run
from milo.store.lock import Owner
from milo.store.reader import RunReader
from milo.store.replay import ReplaySource
from milo.store.run_store import RunStore
from milo.store.sessions import Sessions
from milo.store.traces import TraceStore

__all__ = [
    "FORMAT",
    "AttemptTable",
    "CallLog",
    "Disk",
    "HarnessStore",
    "Owner",
    "ReplaySource",
    "RunPaths",
    "RunReader",
    "RunStore",
    "Sessions",
    "TraceStore",
    "decode_plan",
    "diff_plans",
    "encode_plan",
    "find_run",
    "read_table",
]
