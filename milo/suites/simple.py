"""Our own simplest task: an instruction and a check, in a folder.

``instruction.md`` says what to do, ``check.sh`` or ``check.py`` looks at the workspace, and its
exit code decides: 0 is solved, 1 to 125 is not. `files/` is what the workspace starts with,
`check/` what the check needs beside it (both then lie in /tests), ``solution.sh`` the reference.
"""

from __future__ import annotations

from pathlib import Path

from milo.core.errors import TaskError
from milo.core.task import Limits, Network, Task
from milo.core.tree import File, FileTree
from milo.suites.harbor_steps import instruction_of
from milo.suites.lazy import folder_tree

CHECKS = ("check.sh", "check.py")
KNOWN = frozenset(
    ("instruction.md", "solution.sh", "files", "check", "README.md", "LICENSE", *CHECKS)
)
AGENT_TIMEOUT_S = 600.0
CHECK_TIMEOUT_S = 120.0
STARTS = {"check.sh": 'bash "$tests/check.sh"', "check.py": 'python3 -I "$tests/check.py"'}
TEST_SH = """\
#!/bin/sh
# The exit code is the verdict, unless the check wrote a reward itself. A check that could not be
# started or was killed says nothing.
tests=${{MILO_TESTS:-/tests}} logs=${{MILO_LOGS:-/logs}}/verifier
{start}
code=$?
if [ ! -e "$logs/reward.json" ] && [ ! -e "$logs/reward.txt" ] && [ "$code" -lt 126 ]; then
    [ "$code" -eq 0 ] && echo 1 >"$logs/reward.txt" || echo 0 >"$logs/reward.txt"
fi
exit "$code"
"""


def is_simple(folder: Path) -> bool:
    """Whether a folder is a task of this form, or was meant as one."""
    return any((folder / name).exists() for name in ("instruction.md", *CHECKS))


def load_task(folder: Path, network: Network = Network.NONE) -> Task:
    """One task; its id is the folder's name. Raises `TaskError` naming folder and file."""
    checks = [name for name in CHECKS if (folder / name).is_file()]
    if len(checks) != 1:
        found = " and ".join(checks) or "none"
        raise TaskError(f"task {folder}", f"one check, {' or '.join(CHECKS)}", found)
    for path in sorted(folder.iterdir()):
        if path.name not in KNOWN and not path.name.startswith("."):
            raise TaskError(str(path), f"one of {', '.join(sorted(KNOWN))}", "something else")
    return Task(
        id=folder.name,
        instruction=instruction_of(folder, folder / "instruction.md"),
        workspace=folder_tree(folder, "files"),
        tests=_tests(folder, checks[0]),
        solution=_solution(folder),
        limits=Limits(
            agent_timeout_s=AGENT_TIMEOUT_S,
            verifier_timeout_s=CHECK_TIMEOUT_S,
            network=network,
        ),
    )


def _tests(folder: Path, check: str) -> FileTree:
    script = TEST_SH.format(start=STARTS[check])
    own = {
        check: File((folder / check).read_bytes(), True),
        "test.sh": File(script.encode(), True),
    }
    return FileTree({**folder_tree(folder, "check"), **own})


def _solution(folder: Path) -> FileTree:
    path = folder / "solution.sh"
    if path.exists() and not path.is_file():
        raise TaskError(str(path), "a file", "something else")
    return FileTree({"solve.sh": File(path.read_bytes(), True)} if path.is_file() else {})
