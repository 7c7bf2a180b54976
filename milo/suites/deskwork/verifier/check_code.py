"""Judge a repaired function: run as `check.py TESTS LOGS WORKSPACE`, standard library only.

The candidate's module runs in another process (`runner.py`), which is told the calls and never
the results; this process compares. Calls that the broken module got wrong are goals, the others
guards: reward = share of goals passed × share of guards passed, so an untouched module gets 0.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import secrets
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SECONDS = 8.0
MAX_OUTPUT = 200_000
MAX_SOURCE = 50_000
PR_SET_CHILD_SUBREAPER = 36


class Wrong(Exception):
    """The module cannot be judged; the reward is 0."""


def source_of(workspace: Path, path: str) -> str:
    """The text of the module; only a regular file counts."""
    target = workspace / path
    try:
        status = os.lstat(target)
    except OSError:
        raise Wrong(f"{path} is missing") from None
    if not stat.S_ISREG(status.st_mode):
        raise Wrong(f"{path} is not a regular file")
    if status.st_size > MAX_SOURCE:
        raise Wrong(f"{path} is too large")
    try:
        return target.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Wrong(f"{path} is not UTF-8 text") from None


def call_all(tests: Path, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the calls in the runner and return its answers; raises `Wrong`."""
    nonce = secrets.token_hex(16)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(tests / "runner.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(json.dumps(request | {"nonce": nonce}).encode(), SECONDS)
    except subprocess.TimeoutExpired:
        raise Wrong("the module did not finish in time") from None
    finally:
        kill_descendants(process)
    return answers_in(out[:MAX_OUTPUT], nonce)


def answers_in(out: bytes, nonce: str) -> list[dict[str, Any]]:
    """The runner's answers, if the last line carries the nonce; raises `Wrong`."""
    lines = out.decode(errors="replace").splitlines()
    try:
        reply = json.loads(lines[-1]) if lines else {}
    except (ValueError, RecursionError):
        reply = {}
    if not isinstance(reply, dict) or reply.get("nonce") != nonce:
        raise Wrong("the module ended the process before its function was called")
    if reply.get("problem"):
        raise Wrong(str(reply["problem"]))
    answers: list[dict[str, Any]] = reply["answers"]
    return answers


def kill_descendants(process: subprocess.Popen[bytes]) -> None:
    """Kill everything that the runner started, also what left its session (we are the reaper)."""
    process.kill()
    process.wait()
    stop = time.monotonic() + 5.0
    while time.monotonic() < stop:
        children = descendants()
        if not children:
            return
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue
    raise Wrong("the module left processes behind")


def descendants() -> list[int]:
    """Our own direct children, orphans included."""
    try:
        words = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words]


def same(found: object, wanted: object) -> bool:
    """Equal in value and kind; 12 and 12.0 are equal, True and 1 are not."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return found is wanted
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, dict) and isinstance(found, dict):
        return found.keys() == wanted.keys() and all(same(found[k], wanted[k]) for k in wanted)
    return type(found) is type(wanted) and found == wanted


def judge(expected: dict[str, Any], tests: Path, workspace: Path) -> tuple[float, str]:
    """The reward and the report."""
    calls = expected["calls"]
    request = {
        "source": source_of(workspace, expected["module"]),
        "module": expected["module"],
        "function": expected["function"],
        "calls": [call["args"] for call in calls],
    }
    answers = call_all(tests, request)
    passed = [
        "value" in answer and same(answer["value"], call["result"])
        for call, answer in zip(calls, answers, strict=True)
    ]
    goals = [ok for ok, call in zip(passed, calls, strict=True) if call["goal"]]
    guards = [ok for ok, call in zip(passed, calls, strict=True) if not call["goal"]]
    reward = sum(goals) / len(goals) * (sum(guards) / len(guards) if guards else 1.0)
    errors = {answer["error"] for answer in answers if "error" in answer}
    lines = [f"{sum(passed)} of {len(passed)} calls gave the right result"]
    lines += [f"the function raised {name} on a call" for name in sorted(errors)]
    if not all(passed) and not errors:
        lines.append("the function returned a wrong value on a call")
    return reward, "\n".join(lines) + "\n"


def write(folder: Path, name: str, text: str) -> None:
    """Write a new file in place of whatever stands there."""
    (folder / name).unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(folder / name, flags, 0o644), "w") as file:
        file.write(text)


def main(tests: str, logs: str, workspace: str) -> None:
    """Write reward.json and report.txt into `logs`."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    expected = json.loads((Path(tests) / "expected.json").read_text())
    try:
        reward, report = judge(expected, Path(tests), Path(workspace))
    except Wrong as wrong:
        reward, report = 0.0, f"{wrong}\n"
    write(Path(logs), "report.txt", report)
    write(Path(logs), "reward.json", json.dumps({"reward": reward}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
