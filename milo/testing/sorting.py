"""A small whole task, its honest harness, and a way to make others: for tests of the rollout."""

from __future__ import annotations

from milo.core.harness import Harness
from milo.core.task import Limits, Task
from milo.core.tree import File, FileTree

LIMITS = Limits(agent_timeout_s=20, verifier_timeout_s=20, memory_mb=256, storage_mb=16)
CHECK = """
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
expected = json.load(open(os.path.join(here, "expected.json")))
try:
    given = json.load(open("answer.json"))
except (OSError, ValueError):
    given = None
with open(os.environ["MILO_LOGS"] + "/verifier/reward.json", "w") as out:
    json.dump({"reward": 1 if given == expected else 0}, out)
"""
TEST = b'#!/bin/sh\nexec python3 -I "$MILO_TESTS/check.py"\n'
INSTRUCTION = "Sort the numbers of numbers.json and write them to answer.json."
HONEST = """
import json
json.dump(sorted(json.load(open("numbers.json"))), open("answer.json", "w"))
"""


def sorting_task(delay_s: float = 0.0) -> Task:
    """A task whose verifier can be made to wait before it looks."""
    wait = f"sleep {delay_s}\n".encode() if delay_s else b""
    script = TEST.replace(b"exec", wait + b"exec")
    tests = FileTree(
        {
            "test.sh": File(script),
            "check.py": File(CHECK.encode()),
            "expected.json": File(b"[1, 2, 3]"),
        }
    )
    workspace = FileTree.of_texts({"numbers.json": "[3, 1, 2]"})
    return Task(id="sort", instruction=INSTRUCTION, workspace=workspace, tests=tests, limits=LIMITS)


def harness_of(main: str, **more: str) -> Harness:
    """A harness of one Python file."""
    files = {"harness.toml": 'name = "red"\nentry = "python3 main.py"\n', "main.py": main}
    return Harness.from_tree(FileTree.of_texts({**files, **more}))
