"""Let the model rewrite the schedule of the optimizer in this folder, and keep what helps.

The first run uses the optimizer as it is. Then, as long as time and calls last: the model sees
the schedule, the moves with their parameters and what the last runs did; its schedule is run for
a slice of the time, and is kept if the construction came out better.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

SLICES = 4
MARGIN_S = 3.0
PROMPT = """An optimizer improves a construction of the problem {problem} by a schedule of moves.
The moves and their parameters with defaults (share is each move's part of the time):
{moves}

The present schedule:
{schedule}

What the last run printed (seconds, value):
{log}

Write a better schedule as one Python list of dictionaries, in a code block. Use only these moves
and parameters. Reply with the code block only."""


def ask(prompt: str) -> str:
    """The model's reply; "" where it can't be had."""
    body = {
        "model": os.environ["MILO_MODEL"],
        "messages": [{"role": "user", "content": prompt}],
    }
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return str(json.load(response)["choices"][0]["message"]["content"] or "")
    except (urllib.error.URLError, OSError, KeyError, ValueError):
        return ""


def schedule_in(reply: str) -> str:
    """The list in a reply as the text of a schedule.py; "" where there is none."""
    found = re.search(r"\[.*\]", reply, re.DOTALL)
    try:
        value = ast.literal_eval(found.group(0)) if found else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ""
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        return ""
    return "SCHEDULE = " + repr(value) + "\n"


def moves_of(folder: str) -> str:
    """The signatures of the moves, read from their source."""
    with open(os.path.join(folder, "milo/suites/arena/optimizer/moves.py")) as file:
        tree = ast.parse(file.read())
    return "\n".join(
        f"{node.name}({ast.unparse(node.args)}): {(ast.get_docstring(node) or '').splitlines()[0]}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and "seconds: float" in ast.unparse(node.args)
    )


def run(folder: str, seconds: float) -> str:
    """Run the optimizer for some seconds; what it printed."""
    env = {**os.environ, "MILO_DEADLINE": str(time.time() + seconds)}
    try:
        done = subprocess.run(
            [sys.executable, os.path.join(folder, "main.py")],
            env=env,
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds + 5,
        )
        return (done.stdout + done.stderr)[-1500:]
    except subprocess.TimeoutExpired:
        return "(no end within its time)"


def main() -> None:
    """Run, ask, run again; the optimizer keeps the best construction in its file by itself."""
    if "--smoke" in sys.argv:
        return
    folder = os.path.abspath("optimizer")
    with open("problem.json") as file:
        problem = json.load(file)["problem"]
    deadline = float(os.environ["MILO_DEADLINE"]) - MARGIN_S
    part = (deadline - time.time()) / SLICES
    log = run(folder, part)
    print(log)
    path = os.path.join(folder, "schedule.py")
    while deadline - time.time() > min(part, 5.0):
        with open(path) as file:
            schedule = file.read()
        reply = ask(
            PROMPT.format(
                problem=problem, moves=moves_of(folder), schedule=schedule, log=log[-800:]
            )
        )
        revised = schedule_in(reply)
        if revised:
            shutil.copy(path, path + ".before")
            with open(path, "w") as file:
                file.write(revised)
        log = run(folder, max(1.0, min(part, deadline - time.time())))
        print(log)
        if revised and "ends at" not in log:
            shutil.copy(path + ".before", path)


if __name__ == "__main__":
    main()
