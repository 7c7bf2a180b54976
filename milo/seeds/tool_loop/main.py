"""Tool loop: one shell command per reply, its output shown back, until the model says DONE."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

SYSTEM = (
    "You work in a folder through a shell. Reply with one short bash command in a fenced block "
    "and nothing else, and you are shown its output. When the task is finished, reply with DONE."
)
MAX_STEPS = 3
END_OF_BLOCK = "\n```\n"
OUTPUT_CHARS = 1000


def seconds_left() -> float:
    """Seconds until the deadline, at least one."""
    return max(1.0, float(os.environ["MILO_DEADLINE"]) - time.time())


def complete(messages: list[dict[str, str]]) -> str:
    """One chat completion; the text of the reply."""
    payload = {"model": os.environ["MILO_MODEL"], "messages": messages, "stop": [END_OF_BLOCK]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions",
        data=json.dumps(payload).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
    )
    with urllib.request.urlopen(request, timeout=seconds_left()) as response:
        return json.load(response)["choices"][0]["message"]["content"] or ""


def command_in(reply: str) -> str:
    """The command in a reply: its first fenced block, or nothing."""
    match = re.search(r"```(?:bash|sh)?\n(.*?)(?:```|$)", reply, re.DOTALL)
    return match.group(1).strip() if match else ""


def observe(command: str) -> str:
    """Run a command; what it printed, cut to a bounded length."""
    done = subprocess.run(
        ["bash", "-c", command],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds_left(),
    )
    return (done.stdout + done.stderr)[:OUTPUT_CHARS] or "(no output)"


def work(task: str) -> None:
    """Alternate between the model and the shell until DONE or the last step."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    for _ in range(MAX_STEPS):
        reply = complete(messages)
        print(reply)
        command = command_in(reply)
        if not command:
            break
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": "Output:\n" + observe(command)})


def main() -> None:
    """Work on the task that MILO_TASK names; with --smoke only prove that the program loads."""
    if "--smoke" in sys.argv:
        print("ok")
        return
    work(Path(os.environ["MILO_TASK"]).read_text())


if __name__ == "__main__":
    main()
