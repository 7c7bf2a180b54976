"""Minimal: the model calls read, write and bash until it says something without a call."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from pathlib import Path

from tools import TOOLS, use

MAX_STEPS = 40
HERE = Path(__file__).resolve().parent


def seconds_left() -> float:
    """Seconds until the deadline, at least one."""
    return max(1.0, float(os.environ["MILO_DEADLINE"]) - time.time())


def prompt() -> str:
    """The system prompt, with what skills there are: the model reads those that it wants."""
    text = (HERE / "prompt.md").read_text()
    listed = [f"- {path}: {described(path)}" for path in sorted(HERE.glob("skills/*/SKILL.md"))]
    return "\n".join([text, "Skills, to be read when they fit:", *listed]) if listed else text


def described(skill: Path) -> str:
    """What a skill's head says of it: its line ``description: …``."""
    lines = skill.read_text().splitlines()
    found = (line.partition(":")[2] for line in lines if line.startswith("description:"))
    return next(found, skill.parent.name).strip()


def complete(messages: list[dict[str, object]]) -> dict[str, object]:
    """One chat completion with the tools; the message."""
    payload = {"model": os.environ["MILO_MODEL"], "messages": messages, "tools": TOOLS}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions",
        data=json.dumps(payload).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
    )
    with urllib.request.urlopen(request, timeout=seconds_left()) as response:
        message: dict[str, object] = json.load(response)["choices"][0]["message"]
        return message


def answer(call: dict[str, dict[str, str]]) -> dict[str, object]:
    """The message that answers a tool call."""
    name, text = call["function"]["name"], call["function"]["arguments"]
    print(f"> {name} {text}", flush=True)
    try:
        arguments = json.loads(text or "{}")
        result = use(name, arguments, seconds_left())
    except (ValueError, TypeError) as error:
        result = f"error: the arguments are no JSON object of strings: {error}"
    print(result, flush=True)
    return {"role": "tool", "tool_call_id": call["id"], "content": result}


def work(task: str) -> None:
    """Alternate between the model and its tools."""
    messages: list[dict[str, object]] = [
        {"role": "system", "content": prompt()},
        {"role": "user", "content": task},
    ]
    for _ in range(MAX_STEPS):
        message = complete(messages)
        messages.append(message)
        if message.get("content"):
            print(message["content"], flush=True)
        calls = message.get("tool_calls") or []
        if not calls:
            return
        messages += [answer(call) for call in calls]


def main() -> None:
    """Work on the task that MILO_TASK names; with --smoke only prove that everything is there."""
    if "--smoke" in sys.argv:
        print(f"{len(TOOLS)} tools\n{prompt()}")
        return
    work(Path(os.environ["MILO_TASK"]).read_text())


if __name__ == "__main__":
    main()
