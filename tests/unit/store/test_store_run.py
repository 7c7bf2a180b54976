"""The run directory: who may write it, what survives, what a reader sees."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from store_builders import (
    EXCHANGE,
    PLAN,
    FailingWrites,
    FixedClock,
    create,
    founding,
    harness,
    key,
    missing,
    reopen,
    valid,
)

from milo.core.calls import CallEntry, CallMark
from milo.core.errors import (
    ConfigError,
    DiskFull,
    RecordError,
    RunError,
    StaleWriter,
)
from milo.core.events import (
    RunEnded,
    RunResumed,
)
from milo.core.evidence import Trace
from milo.core.plan import RunPlan, SuitePlan
from milo.store import (
    Disk,
    Owner,
    RunReader,
    RunStore,
    decode_plan,
    diff_plans,
    encode_plan,
    find_run,
)
from milo.store.lock import RunLock, start_time


def test_a_run_keeps_everything_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    with create(path) as store:
        epoch = store.claim("a")
        written = store.append("a", epoch, founding())
        digest = store.put_trace(Trace(exchanges=(EXCHANGE,), exit_code=0, changed={"f": "x"}))
        store.put_session("mutator/a/1", Trace(exchanges=(EXCHANGE,)))
        store.append_attempts([valid(key(0), trace=digest), missing(key(1))])
        store.put_harness("a.0", harness(), (), "seed")
    with reopen(path) as store:
        assert (store.name, store.warnings) == ("first", ())
        assert decode_plan(store.plan) == RunPlan(seed=3)
        assert tuple(store.records()) == written
        assert tuple(store.records(from_seq=2)) == written[2:]
        assert store.population().topology["a"].members == ("a.0",)
        assert store.lookup([key(0), key(1)]) == {key(0): valid(key(0), trace=digest)}
        assert store.spent_by_attempts()[0] == 2
        assert store.get_trace(digest).exchanges == (EXCHANGE,)
        assert store.get_harness("a.0") == harness()
        assert store.harnesses.commit("a.0")


def test_an_existing_run_or_folder_is_never_overwritten(tmp_path: Path) -> None:
    create(tmp_path / "run").close()
    with pytest.raises(RunError, match="found a run; resume it instead"):
        create(tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(RunError, match="found 1 files in it"):
        create(tmp_path / "other")
    with pytest.raises(RunError, match="found a file"):
        create(tmp_path / "other" / "thesis.tex")
    assert sorted(p.name for p in (tmp_path / "other").iterdir()) == ["thesis.tex"]


def test_an_empty_folder_may_become_a_run(tmp_path: Path) -> None:
    create(tmp_path).close()
    assert RunReader(tmp_path).name == "first"


def test_too_little_space_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    disk = Disk(free=lambda _: 1000)
    with pytest.raises(RunError, match="at least 2,000 bytes free, found 1,000"):
        RunStore.create(
            tmp_path / "r", "r", PLAN, clock=FixedClock(), min_free_bytes=2000, disk=disk
        )
    assert not list((tmp_path / "r").iterdir())


def test_a_creation_that_was_cut_short_is_no_run(tmp_path: Path) -> None:
    disk = Disk(write=FailingWrites(300))
    with pytest.raises(DiskFull):
        RunStore.create(tmp_path, "r", PLAN, clock=FixedClock(), min_free_bytes=0, disk=disk)
    with pytest.raises(RunError, match=r"no run\.json in it"):
        reopen(tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"format":99,"name":"r","created":0}', "format 99"),
        ('{"name":"r"}', "KeyError"),
        ("nothing", "JSONDecodeError"),
        ("[]", "TypeError"),
    ],
)
def test_a_directory_of_another_format_is_refused(tmp_path: Path, text: str, found: str) -> None:
    create(tmp_path).close()
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunError, match=found):
        reopen(tmp_path)


def test_a_replaced_writer_is_refused_also_after_a_restart(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        old = store.claim("a")
        store.append("a", old, founding())
        new = store.claim("a")
        assert new > old
        with pytest.raises(StaleWriter, match=f"shard a: epoch {old} may not write.* {new}"):
            store.append("a", old, [RunResumed()])
        with pytest.raises(StaleWriter, match="unclaimed"):
            store.append("b", 0, [RunResumed()])
        assert store.claim("b") == 1
        before = len(list(store.records()))
    with reopen(tmp_path) as store:
        assert store.claim("a") > new
        with pytest.raises(StaleWriter):
            store.append("a", new, [RunResumed()])
        assert len(list(store.records())) == before


def test_epochs_grow_even_if_their_file_was_lost(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        for _ in range(3):
            epoch = store.claim("a")
        store.append("a", epoch, [RunResumed()])
    (tmp_path / "epochs.json").unlink()
    with reopen(tmp_path) as store:
        assert store.claim("a") == epoch + 1
    (tmp_path / "epochs.json").write_text("[1]")
    with pytest.raises(RecordError, match="no table of epochs"):
        reopen(tmp_path)


def test_a_second_writer_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with create(tmp_path):
        with pytest.raises(RunError, match=f"process {os.getpid()} on"):
            reopen(tmp_path)
        owner = RunReader(tmp_path).owner()
        assert owner is not None and owner.pid == os.getpid()
    assert RunReader(tmp_path).owner() is None
    reopen(tmp_path).close()


HOLDER = """
import sys, pathlib
from milo.store.lock import RunLock
lock = RunLock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    create(tmp_path).close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(RunError, match=f"process {holder.pid} on"):
        reopen(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert RunReader(tmp_path).owner() is None
    reopen(tmp_path).close()


def test_a_live_owner_is_respected_where_the_file_system_shares_no_locks(tmp_path: Path) -> None:
    parent = replace(Owner.this_process(), pid=os.getppid(), started=start_time(os.getppid()))
    text = json.dumps({k: getattr(parent, k) for k in ("pid", "host", "boot", "started")})
    (tmp_path / "lock").write_text(text)
    with pytest.raises(RunError, match=f"process {os.getppid()}"):
        RunLock(tmp_path / "lock")


def test_a_later_process_with_the_owners_pid_is_not_the_owner(tmp_path: Path) -> None:
    me = Owner.this_process()
    assert me.is_alive
    assert not replace(me, started="1").is_alive
    assert not replace(me, boot="another").is_alive
    assert not replace(me, host="another").is_alive
    assert replace(me, started="").is_alive
    assert not replace(me, pid=2**22 + 1, started="").is_alive


def test_a_copy_of_a_run_that_goes_on_is_driven_by_nobody(tmp_path: Path) -> None:
    """Else a backup is said to run, and can't be gone on with."""
    with create(tmp_path / "one"):
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        assert RunReader(tmp_path / "one").owner() is not None
        assert RunReader(tmp_path / "two").owner() is None
        reopen(tmp_path / "two").close()
        (tmp_path / "one").rename(tmp_path / "three")
        assert RunReader(tmp_path / "three").owner() is not None


def test_a_run_whose_journal_is_gone_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    create(tmp_path).close()
    (tmp_path / "journal.jsonl").unlink()
    with pytest.raises(RecordError, match=r"journal\.jsonl is missing"):
        RunReader(tmp_path)


def test_a_torn_lock_file_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text('{"pid":')
    lock = RunLock(tmp_path / "lock")
    lock.release()
    lock.release()


def test_what_a_kill_left_torn_is_said_on_opening_and_cut_off(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        store.append("a", store.claim("a"), founding())
        store.put_session("s", Trace())
    for name in ("journal.jsonl", "sessions.jsonl", "attempts/pending.jsonl"):
        with (tmp_path / name).open("ab") as file:
            file.write(b'{"half')
    with RunReader(tmp_path) as reader:
        assert len(list(reader.records())) == 3
        assert len(reader.sessions) == 1 and reader.attempts.count == 0
        assert len(reader.warnings) == 3
    with reopen(tmp_path) as store:
        assert len(store.warnings) == 3
    with reopen(tmp_path) as store:
        assert store.warnings == ()


def test_a_reader_follows_a_live_writer_and_takes_no_lock(tmp_path: Path) -> None:
    with create(tmp_path) as store, RunReader(tmp_path) as reader:
        epoch = store.claim("a")
        store.append("a", epoch, founding())
        assert reader.population().topology["a"].round == -1
        store.append("a", epoch, [RunEnded(reason="done", searched=True)])
        assert reader.population().ended is not None
        assert [record.seq for record in reader.records(2)] == [2, 3]
        assert reader.plan["seed"] == 3 and reader.created == 1000.5


def test_a_full_disk_stops_a_claim_and_the_old_epoch_stands(tmp_path: Path) -> None:
    writes = FailingWrites(10**6)
    store = RunStore.create(
        tmp_path, "r", PLAN, clock=FixedClock(), min_free_bytes=0, disk=Disk(write=writes)
    )
    epoch = store.claim("a")
    writes.room = 3
    with pytest.raises(DiskFull):
        store.claim("a")
    writes.room = 10**6
    assert store.append("a", epoch, [RunResumed()])
    store.close()


# --- names and plans -----------------------------------------------------------------------------


def test_a_run_is_found_by_path_by_name_and_by_a_unique_beginning(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    create(runs / "2026-01-01-deskwork", "alpha").close()
    create(runs / "multi" / "job-1", "beta").close()
    for name in (str(runs / "multi" / "job-1"), "job-1", "multi/job-1", "beta", "be"):
        assert find_run(name, runs) == runs / "multi" / "job-1"
    assert find_run("2026", runs) == runs / "2026-01-01-deskwork"


def test_a_name_of_no_run_or_of_two_is_refused_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there are no runs"):
        find_run("x", tmp_path / "runs")
    create(tmp_path / "runs" / "one", "same").close()
    create(tmp_path / "runs" / "two", "same").close()
    with pytest.raises(RunError, match=r"found 2 runs: .*one.*two"):
        find_run("same", tmp_path / "runs")
    with pytest.raises(RunError, match=r"none of that name; 2 runs: .*one"):
        find_run("three", tmp_path / "runs")
    with pytest.raises(RunError, match="found a folder that is no run"):
        find_run(str(tmp_path / "runs"), tmp_path / "runs")
    (tmp_path / "runs" / "two" / "run.json").write_text("broken")
    assert find_run("same", tmp_path / "runs").name == "one"


def test_a_copy_beside_its_original_leaves_the_originals_folder_its_name(tmp_path: Path) -> None:
    create(tmp_path / "runs" / "one", "one").close()
    shutil.copytree(tmp_path / "runs" / "one", tmp_path / "runs" / "backup")
    assert find_run("one", tmp_path / "runs") == tmp_path / "runs" / "one"
    assert find_run("backup", tmp_path / "runs") == tmp_path / "runs" / "backup"


def test_a_changed_plan_is_shown_key_by_key() -> None:
    new = encode_plan(RunPlan(seed=4, suite=SuitePlan(families=("shell",))))
    assert diff_plans(PLAN, new) == ("seed: 3 -> 4", 'suite.families: [] -> ["shell"]')
    assert diff_plans(PLAN, json.loads(json.dumps(PLAN))) == ()
    assert diff_plans({"a": 1}, {"b": {}}) == ("a: 1 -> (absent)", "b: (absent) -> {}")


def test_a_plan_that_fits_no_type_names_its_key() -> None:
    with pytest.raises(ConfigError, match=r"plan key suite\.search"):
        decode_plan({**PLAN, "suite": {"search": "many"}})


def test_a_disk_that_is_nearly_full_says_what_it_lacks(tmp_path: Path) -> None:
    create(tmp_path / "run").close()
    for free, words in ((40 << 20, ""), (3 << 20, "32 MiB must be free, 3.0 MiB are")):
        disk = Disk(free=lambda _, free=free: free)
        with RunStore.open(tmp_path / "run", clock=FixedClock(), disk=disk) as store:
            said = store.shortage()
            assert words in said and bool(said) == bool(words)


def test_a_replaced_writer_may_write_nothing_else_either(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        old = store.claim("a")
        store.claim("a")
        with pytest.raises(StaleWriter):
            store.fence("a", old)


def test_a_part_that_finds_no_room_at_the_end_keeps_the_run_from_nobody(tmp_path: Path) -> None:
    """What breaks without it: the lock of a run outlives its end in a process that lives on."""
    writes = FailingWrites(10_000_000)
    store = create(tmp_path, disk=Disk(write=writes))
    writes.room = 0
    store.append_calls([CallEntry(mark=CallMark.RESERVED, role="target", call="1", scope="s")])
    with pytest.raises(DiskFull):
        store.close()
    reopen(tmp_path).close()
