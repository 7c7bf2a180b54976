"""Chooses the strongest local sandbox that works on this host, and says why not a stronger one."""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from milo.core.errors import ConfigError
from milo.core.ports import Sandbox
from milo.core.tree import File, FileTree
from milo.rollout.bubblewrap import LAUNCHER_FILE, BubblewrapHost, BubblewrapSandbox
from milo.rollout.cgroups import CgroupHost
from milo.rollout.netdoor import may_enter
from milo.rollout.plain import PlainHost, PlainSandbox
from milo.rollout.scratch import scratch_root
from milo.rollout.system import NOBODY, SYSTEM_PATH, Python, find_python, system_arguments

KINDS = ("auto", "bubblewrap", "plain")
TOOL_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
PROBE_S = 20.0
NPROC_PER_NAMESPACE = (5, 14)
"""The kernel from which a process limit set in a user namespace counts only what is in it."""


def choose(
    kind: str = "auto", *, root: Path | None = None, hidden: tuple[Path, ...] | None = None
) -> Sandbox:
    """A sandbox of the kind; `auto` falls back to the plain one where bubblewrap can't work.

    `root` is where scratch folders lie; `hidden` the folders of the system that commands must
    not see, by default MILO's own package. Blocks for some 20 ms: bubblewrap is tried once.
    Raises `ConfigError` for an unknown kind, or where the one that was asked for can't work.
    """
    if kind not in KINDS:
        raise ConfigError("cluster.sandbox", f"one of {', '.join(KINDS)}", kind)
    folder = root if root is not None else scratch_root()
    if kind == "plain":
        return PlainSandbox(plain_host(folder, "asked for by cluster.sandbox"))
    host = probe(folder, hidden if hidden is not None else (Path(__file__).parents[1],))
    if isinstance(host, BubblewrapHost):
        return BubblewrapSandbox(host)
    if kind == "bubblewrap":
        raise ConfigError("cluster.sandbox", "bubblewrap to work here", host)
    return PlainSandbox(plain_host(folder, f"bubblewrap can't be used: {host}"))


def probe(root: Path, hidden: tuple[Path, ...]) -> BubblewrapHost | str:
    """How bubblewrap works here, tried once with ``true``; or why it doesn't."""
    found = shutil.which("bwrap", path=TOOL_PATH)
    if found is None:
        return "bwrap is not installed"
    if not hasattr(os, "pidfd_open"):
        return "this Python has no pidfd_open"
    python, reason = find_python(), ""
    lowered, reset = lowering_prefix(), resetting_prefix()
    for start in dict.fromkeys((lowered, ())):
        for extra in (("--disable-userns",), ()):
            prefix = (*reset, *start, found, *extra)
            reason = _try(prefix, python, hidden)
            if not reason:
                return _host(prefix, python, hidden, root, NOBODY if start else None)
    return reason


def plain_host(root: Path, reason: str) -> PlainHost:
    """How the plain sandbox starts commands here."""
    python = find_python()
    lowered = lowering_prefix() if python.prefix is None else ()
    return PlainHost(
        prefix=(*resetting_prefix(), *lowered),
        python=python,
        uid=NOBODY if lowered else None,
        root=root,
        reason=reason,
    )


def lowering_prefix() -> tuple[str, ...]:
    """What makes a root's command run as nobody; empty for an ordinary user."""
    setpriv = shutil.which("setpriv", path=TOOL_PATH)
    if os.geteuid() != 0 or setpriv is None:
        return ()
    user = str(NOBODY)
    return (setpriv, "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs")


def resetting_prefix() -> tuple[str, ...]:
    """What gives a command the default handlers of signals that we were started to ignore.

    Shells start background jobs so, and `nohup`; a command would inherit it, and could not be
    interrupted. Empty where nothing is ignored, or where `env` can't reset it.
    """
    ours = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by Python, which resets them for children
    ignored = [
        number.name.removeprefix("SIG")
        for number in signal.Signals
        if number not in ours and signal.getsignal(number) is signal.SIG_IGN
    ]
    env = shutil.which("env", path=TOOL_PATH)
    if not ignored or env is None:
        return ()
    prefix = (env, f"--default-signal={','.join(ignored)}")
    done = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    return prefix if done.returncode == 0 else ()


def _host(
    prefix: tuple[str, ...], python: Python, hidden: tuple[Path, ...], root: Path, uid: int | None
) -> BubblewrapHost:
    script = Path(__file__).with_name(LAUNCHER_FILE).read_bytes()
    return BubblewrapHost(
        prefix=prefix,
        python=python,
        hidden=hidden,
        uid=uid,
        own_uid=os.geteuid(),
        cgroups=CgroupHost.detect(),
        nproc=_counts_per_namespace() and shutil.which("prlimit", path=SYSTEM_PATH) is not None,
        root=root,
        launcher=FileTree({LAUNCHER_FILE: File(script)}),
        enters=may_enter(),
    )


def _try(prefix: tuple[str, ...], python: Python, hidden: tuple[Path, ...]) -> str:
    """ "" if ``true`` runs in a sandbox started so, else the reason in one line."""
    argv = [*prefix, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    argv += [*system_arguments(python, hidden), "--proc", "/proc", "--dev", "/dev"]
    argv += ["--tmpfs", "/tmp", "--cap-drop", "ALL", "--", python.executable, "-I", "-S", "-c", ""]
    try:
        done = subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"bwrap ended with {done.returncode}"


def _counts_per_namespace() -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", platform.release())
    if not sys.platform.startswith("linux") or numbers is None:
        return False
    return (int(numbers[1]), int(numbers[2])) >= NPROC_PER_NAMESPACE
