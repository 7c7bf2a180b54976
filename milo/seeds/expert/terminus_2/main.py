"""Terminus-2 style: the model sees a terminal and answers with keystrokes, as JSON."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import urllib.request
from pathlib import Path

from terminal import Terminal

HERE = Path(__file__).resolve().parent
MAX_STEPS = 50
MAX_DURATION_S = 60.0
KEPT_CHARS = 120_000


def seconds_left() -> float:
    """Seconds until the deadline, at least one."""
    return max(1.0, float(os.environ["MILO_DEADLINE"]) - time.time())


def complete(messages: list[dict[str, str]]) -> str:
    """One chat completion; the text of the reply."""
    payload = {"model": os.environ["MILO_MODEL"], "messages": messages}
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


def parsed(reply: str) -> dict[str, object]:
    """The first JSON object in a reply; raises `ValueError` saying what is wrong with it."""
    start = reply.find("{")
    if start < 0:
        raise ValueError("there is no JSON object in your reply")
    answer, _ = json.JSONDecoder(strict=False).raw_decode(reply[start:])
    commands = answer.get("commands", [])
    if not isinstance(commands, list) or not all(
        isinstance(one, dict) and isinstance(one.get("keystrokes"), str) for one in commands
    ):
        raise ValueError('"commands" must be a list of objects with "keystrokes"')
    return answer


def typed(terminal: Terminal, commands: list[dict[str, object]]) -> str:
    """The screen after the commands."""
    shown = ""
    for one in commands:
        try:
            duration = float(one.get("duration", 1.0))
        except (TypeError, ValueError):
            duration = 1.0
        terminal.type(str(one["keystrokes"]))
        shown += terminal.read(min(duration, MAX_DURATION_S, seconds_left()))
    return shown


def kept(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """The task, and as many of the last messages as there is room for."""
    room, last = KEPT_CHARS - len(messages[0]["content"]), len(messages)
    while last > 1 and room > 0:
        last -= 1
        room -= len(messages[last]["content"])
    return [messages[0], *messages[last if room > 0 else last + 1 :]]


def work(task: str, terminal: Terminal) -> None:
    """Alternate between the model and the terminal until it has said twice that it is done."""
    prompt = (HERE / "prompt.md").read_text() + task
    messages = [{"role": "user", "content": f"{prompt}\n\nThe terminal:\n{terminal.read(1.0)}$ "}]
    asked = False
    for _ in range(MAX_STEPS):
        reply = complete(kept(messages))
        print(reply, flush=True)
        messages.append({"role": "assistant", "content": reply})
        try:
            answer = parsed(reply)
            shown = typed(terminal, answer.get("commands", []))
            done = answer.get("task_complete") is True
        except ValueError as error:
            shown, done = f"Your reply could not be read: {error}", False
        print(shown, flush=True)
        if done and asked:
            return
        asked = done
        question = (HERE / "confirm.md").read_text() if done else ""
        messages.append({"role": "user", "content": f"{question}The terminal:\n{shown}"})


def smoke(terminal: Terminal) -> None:
    """Prove that the terminal answers and that a reply is understood."""
    example = re.search(r"^\{.*?^\}", (HERE / "prompt.md").read_text(), re.DOTALL | re.MULTILINE)
    if example is None:
        raise SystemExit("prompt.md shows no reply")
    parsed(example.group())
    shown = typed(terminal, [{"keystrokes": "echo $((6 * 7))\n", "duration": 5}])
    if "42" not in shown:
        raise SystemExit(f"the terminal does not answer: {shown!r}")
    print(shown)


def main() -> None:
    """Work on the task that MILO_TASK names; with --smoke prove that everything works."""
    terminal = Terminal()
    try:
        if "--smoke" in sys.argv:
            smoke(terminal)
        else:
            work(Path(os.environ["MILO_TASK"]).read_text(), terminal)
    finally:
        terminal.close()


if __name__ == "__main__":
    main()
