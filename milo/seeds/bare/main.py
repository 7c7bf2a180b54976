"""Bare: one completion, and the script in it is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PROMPT = "Reply with a short bash script that does the task and nothing else."
END_OF_BLOCK = "\n```\n"


def seconds_left() -> float:
    """Seconds until the deadline, at least one."""
    return max(1.0, float(os.environ["MILO_DEADLINE"]) - time.time())


def ask(messages: list[dict[str, str]]) -> str:
    """One chat completion; the text of the reply."""
    body = {"model": os.environ["MILO_MODEL"], "messages": messages, "stop": [END_OF_BLOCK]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
    )
    with urllib.request.urlopen(request, timeout=seconds_left()) as response:
        return json.load(response)["choices"][0]["message"]["content"] or ""


def script_in(reply: str) -> str:
    """The first fenced block of a reply, or all of it where there is none."""
    match = re.search(r"```\w*\n(.*?)(?:```|$)", reply, re.DOTALL)
    return match.group(1) if match else reply


def run(script: str) -> int:
    """Run a bash script in the workspace; its exit code."""
    done = subprocess.run(["bash", "-c", script], check=False, timeout=seconds_left())
    return done.returncode


def solve(task: str) -> None:
    """Ask once and run the answer."""
    reply = ask([{"role": "system", "content": PROMPT}, {"role": "user", "content": task}])
    print(reply)
    run(script_in(reply))


def main() -> None:
    """Solve the task that MILO_TASK names; with --smoke only prove that the program loads."""
    if "--smoke" in sys.argv:
        print("ok")
        return
    solve(Path(os.environ["MILO_TASK"]).read_text())


if __name__ == "__main__":
    main()
