"""Plan, then act: one call for a plan, one for a script that carries it out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from model import chat, seconds_left

PLAN_PROMPT = "Plan the task in one short sentence. Do not write code."
ACT_PROMPT = "Carry out the plan. Reply with a short bash script and nothing else."


def script_in(reply: str) -> str:
    """All fenced blocks of a reply, one after the other."""
    return "\n".join(re.findall(r"```\w*\n(.*?)(?:```|$)", reply, re.DOTALL))


def execute(script: str) -> None:
    """Run a bash script in the workspace."""
    subprocess.run(["bash", "-c", script], check=False, timeout=seconds_left())


def plan_and_act(task: str) -> None:
    """Ask for a plan, then for a script, and run the script."""
    plan = chat(PLAN_PROMPT, task)
    print(plan)
    reply = chat(ACT_PROMPT, task + "\n\nPlan:\n" + plan)
    print(reply)
    execute(script_in(reply))


def main() -> None:
    """Solve the task that MILO_TASK names; with --smoke only prove that the program loads."""
    if "--smoke" in sys.argv:
        print("ok")
        return
    plan_and_act(Path(os.environ["MILO_TASK"]).read_text())


if __name__ == "__main__":
    main()
