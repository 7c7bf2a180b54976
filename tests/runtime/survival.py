"""Kills pieces of a replayed run with SIGKILL at random moments, and looks at what is left.

The run replays a recording, so that it must come out as the recording did, however often it was
killed. Where the sandbox is the plain one, harnesses write down outside of it that they were run:
so it shows whether anything that was on record was made again.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
from words import attempts_in, called, descendants, lineage_of, milo, started, words_for, words_of

from milo.app.leftovers import owner_of
from milo.core.attempt import AttemptKey
from milo.core.harness import Harness
from milo.rollout.scratch import is_of_owner, scratch_root
from milo.store import RunReader
from milo.testing.scripted_model import ScriptedServer

SEEDS = Path(__file__).parents[2] / "milo" / "seeds"
ENGINE = Path(__file__).parents[2] / "scripts" / "engine"
VICTIMS = {
    "driver": "",
    "island": "ray::IslandActor",
    "host": "ray::HostActor",  # with the gateway, which lives in it
    "recorder": "ray::Recorder",
    "dispatcher": "ray::Dispatcher",
    "worker": "ray::",
    "raylet": "raylet/raylet",
    "gcs": "gcs_server",
}
"""What is killed, and what its command line holds."""
ENGINE_VICTIM = "engine"
BASE = "milo/base:test"
PATIENCE = {"RAY_gcs_rpc_server_reconnect_timeout_s": "10"}
"""Ray's own server never comes back here, and a driver would wait for it for a minute."""
GONE_S = 60.0
STEP_S = 0.25
SETTLE_S = 3.0
"""How long attempts of before a blow may still come in."""
ON_S = 300.0
RUN_S = 1800.0
NOTE = """
if "--smoke" not in sys.argv and "MILO_TASK" in os.environ:
    import hashlib as _h
    _own = b"".join(p.read_bytes() for p in sorted(Path(__file__).parent.rglob("*.py"), key=str))
    _said = Path(os.environ["MILO_TASK"]).read_text().strip().encode()
    with open({log!r}, "a") as _log:
        _log.write(_h.sha256(_own).hexdigest() + " " + _h.sha256(_said).hexdigest() + "\\n")
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Blow:
    """One kill: whom, at how many attempts on record, whether the run went on by itself, and what
    was still there a minute after a run that did not."""

    victim: str
    at: int
    went_on: bool
    left: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Campaign:
    """Kills one replay after another. One owner; everything lies below `folder`.

    `engine` is the folder of a container engine of ours (`scripts/engine`), for that sandbox;
    `tell` is given a line for each kill.
    """

    folder: Path
    server: ScriptedServer
    suite: Path
    rng: random.Random
    sandbox: str = "auto"
    engine: Path | None = None
    rounds: int = 3
    tell: Callable[[str], object] = lambda line: None
    blows: list[Blow] = field(default_factory=list)
    repeated: int = 0
    lost: int = 0
    different: int = 0
    replays: int = 0
    _seen: list[tuple[frozenset[AttemptKey], int]] = field(default_factory=list)
    _family: dict[int, psutil.Process] = field(default_factory=dict)

    # --- the runs -------------------------------------------------------------------------------

    def record(self) -> None:
        """The uninterrupted run."""
        done = milo(self._words("one"), self.folder, RUN_S, **self._environment())
        assert done.returncode == 0, done.stdout + done.stderr
        self.total = attempts_in(self.folder / "one")

    def strike(self, victims: Sequence[str]) -> None:
        """Kill them one by one, each at a random moment of some replay; then let it end."""
        waiting = list(victims)
        while waiting:
            self._replay(waiting)

    def _replay(self, waiting: list[str]) -> None:
        """One replay, killed and resumed until it is finished or nobody waits any more."""
        self.replays += 1
        name = f"again{self.replays}"
        run = self.folder / name
        words = self._words(name, "replay=one")
        while waiting and not finished(run):
            self._seen = [self._look(run)]
            environment = self._environment(PYTHONHASHSEED=str(self.rng.randrange(1000)))
            with started(words, self.folder, **environment) as process:
                self._session(process, run, waiting)
            self._look_back(run)
            words = ["resume", name]
        last = milo(["resume", name], self.folder, RUN_S, **self._environment())
        assert last.returncode == 0, last.stdout + last.stderr
        self.different += lineage_of(run) != lineage_of(self.folder / "one")
        self.lost += abs(attempts_in(run) - self.total)

    def _session(self, process: subprocess.Popen[str], run: Path, waiting: list[str]) -> None:
        """From a start to the death of the driver, or until nobody waits any more."""
        blows: list[Blow] = []
        self._family = {}
        while waiting and self._runs(process):
            enough = attempts_in(run) + self.rng.randrange(1, max(2, self.total // 6))
            wait_for(lambda n=enough: not self._runs(process) or attempts_in(run) >= n)
            time.sleep(self.rng.random())
            if not self._runs(process) or not self._kill(waiting[0], process):
                continue
            self._seen.append(self._look(run))
            blows.append(Blow(victim=waiting.pop(0), at=attempts_in(run), went_on=True))
            self._settle(process, run)
        if not self._runs(process) and blows:
            went_on, left = process.returncode == 0, self._left(run)
            blows[-1] = replace(blows[-1], went_on=went_on, left=left)
        self.blows += blows
        for blow in blows:
            left = f"{len(blow.left)} things left{': ' if blow.left else ''}{', '.join(blow.left)}"
            how = "went on" if blow.went_on else left
            self.tell(f"{blow.victim} killed at {blow.at} attempts of replay {self.replays}: {how}")

    def _runs(self, process: subprocess.Popen[str]) -> bool:
        """Whether the driver lives; remembers its family, which can't be asked for any more once
        it is dead."""
        if process.poll() is not None:
            return False
        for member in (psutil.Process(process.pid), *descendants(process.pid)):
            self._family[member.pid] = member
        return True

    def _settle(self, process: subprocess.Popen[str], run: Path) -> None:
        """Wait for the driver's death, or for attempts that were begun after the blow."""
        time.sleep(SETTLE_S)
        before = attempts_in(run)
        wait_for(lambda: not self._runs(process) or attempts_in(run) > before)

    # --- the killing ----------------------------------------------------------------------------

    def _kill(self, victim: str, process: subprocess.Popen[str]) -> bool:
        """Whether somebody was found and killed."""
        if victim == ENGINE_VICTIM:
            return self._kill_engine()
        if victim == "driver":
            process.kill()
            process.wait()
            return True
        found = called(process.pid, VICTIMS[victim])
        if not found:
            return False
        self.rng.choice(found).kill()
        return True

    def _kill_engine(self) -> bool:
        """Kill the engine, and bring it up again, as whatever watches over it would."""
        assert self.engine is not None
        os.kill(int((self.engine / "docker.pid").read_text()), 9)
        time.sleep(self.rng.random() * 4)
        subprocess.run([ENGINE, "up", str(self.engine)], check=True, capture_output=True)
        return True

    # --- looking back ---------------------------------------------------------------------------

    def _left(self, run: Path) -> tuple[str, ...]:
        """What is left of a dead driver's run after a minute at most: processes, folders, groups,
        containers."""
        owner = owner_of(run)

        def remains() -> tuple[str, ...]:
            return (
                *(f"process {words_of(p)[:60]}" for p in self._family.values() if is_alive(p)),
                *(f"warden of {ward}" for ward in wards() if ward in self._family),
                *(str(path) for path in folders_of(owner)),
                *self._containers(owner),
            )

        deadline = time.monotonic() + GONE_S
        while (left := remains()) and time.monotonic() < deadline:
            time.sleep(1.0)
        return left

    def _containers(self, owner: str) -> tuple[str, ...]:
        if self.engine is None:
            return ()
        argv = ["docker", "ps", "-aq", "--filter", f"label=milo.run={owner}"]
        environment = {**os.environ, **self._environment()}
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        return tuple(f"container {name}" for name in done.stdout.split())

    def _look(self, run: Path) -> tuple[frozenset[AttemptKey], int]:
        """What is on record now, and how many executions were noted before."""
        known = recorded_keys(run)
        return known, len(self._executions())

    def _look_back(self, run: Path) -> None:
        """Count what was once on record and is gone, and what of it was made again."""
        now, noted = recorded_keys(run), self._executions()
        self.lost += len(frozenset().union(*(known for known, _ in self._seen)) - now)
        if not noted or not now:
            return
        with RunReader(run) as reader:
            trees = {digest: reader.harnesses.get(digest) for digest in {k.harness for k in now}}
        names = {k: execution_of(trees[k.harness], self.suite / k.task) for k in now}
        silent = [str(key) for key, name in names.items() if name not in set(noted)]
        assert not silent, f"harnesses do not note their executions: {silent}"
        again = {
            names[key]
            for known, before in self._seen
            for key in known & now
            if names[key] in set(noted[before:])
        }
        self.repeated += len(again)

    def _executions(self) -> list[str]:
        log = self.folder / "executions"
        return log.read_text().splitlines() if log.exists() else []

    # --- how it is started ----------------------------------------------------------------------

    def _words(self, run: str, *more: str) -> list[str]:
        words = words_for(self.server, self.suite, run, f"budget.rounds={self.rounds}", "seed=9")
        if self.sandbox == "plain":
            words.append(f"seeds={','.join(str(path) for path in self._noting_seeds())}")
        if self.engine is not None:
            words.append(f"cluster.image={BASE}")
        return [*words, f"cluster.sandbox={self.sandbox}", *more]

    def _environment(self, **more: str) -> dict[str, str]:
        engine = {"DOCKER_HOST": f"unix://{self.engine}/docker.sock"} if self.engine else {}
        return {**PATIENCE, **engine, **more}

    def _noting_seeds(self) -> Iterator[Path]:
        """The seeds that come with MILO, which note each run of theirs."""
        log = self.folder / "executions"
        if not log.exists():
            log.touch()
            log.chmod(0o666)
        for seed in sorted(SEEDS.glob("*/harness.toml")):
            folder = self.folder / "seeds" / seed.parent.name
            if not folder.exists():
                tree = Harness.from_dir(seed.parent).tree
                head = "from pathlib import Path\n"
                text = tree.text("main.py").replace(head, head + NOTE.format(log=str(log)), 1)
                tree.with_texts({"main.py": text}).write_to(folder)
            yield folder


def execution_of(harness: Harness, task: Path) -> str:
    """How a harness notes that it was run on a task."""
    own = b"".join(harness.tree[p].data for p in sorted(harness.tree) if p.endswith(".py"))
    said = (task / "instruction.md").read_text().strip().encode()
    return f"{hashlib.sha256(own).hexdigest()} {hashlib.sha256(said).hexdigest()}"


def recorded_keys(run: Path) -> frozenset[AttemptKey]:
    """The attempts on record with a valid outcome."""
    if not (run / "run.json").exists():
        return frozenset()
    with RunReader(run) as reader:
        return frozenset(outcome.key for outcome in reader.attempts.iter() if outcome.is_valid)


def finished(run: Path) -> bool:
    """Whether a run has ended for good."""
    if not (run / "run.json").exists():
        return False
    with RunReader(run) as reader:
        return reader.population().ended is not None


def folders_of(owner: str) -> list[Path]:
    """Scratch folders and control groups of an owner on this machine."""
    roots = {scratch_root(), Path(tempfile.gettempdir())}
    found = [p for root in roots for p in root.iterdir() if is_of_owner(p.name, owner)]
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        found += [Path(folder) / name for name in names if is_of_owner(name, owner)]
    return found


def wards() -> list[int]:
    """Whom the wardens of this machine watch, or clear up after."""
    words = [words_of(process).split() for process in psutil.process_iter()]
    return [int(argv[-1]) for argv in words if argv[1:-1] == ["-m", "milo.runtime.warden"]]


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; one that waits to be reaped does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(done: Callable[[], bool]) -> None:
    """Until it comes true; fails after five minutes."""
    deadline = time.monotonic() + ON_S
    while not done():
        assert time.monotonic() < deadline, f"nothing happened for {ON_S:g} s"
        time.sleep(STEP_S)
