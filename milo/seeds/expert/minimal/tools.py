"""The tools: their descriptions as the model sees them, and what they do."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

LIMIT = 10_000
BASH_S = 60.0


def tool(name: str, description: str, **properties: str) -> dict[str, object]:
    """A function in the form of chat completions; all parameters are required strings."""
    parameters = {
        "type": "object",
        "properties": {
            key: {"type": "string", "description": text} for key, text in properties.items()
        },
        "required": list(properties),
    }
    about = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": about}


TOOLS = [
    tool("read", "Show a text file.", path="the file"),
    tool("write", "Make or replace a text file.", path="the file", content="its whole content"),
    tool("bash", "Run a command in bash; standard output and error are shown.", command="it"),
]


def use(name: str, arguments: dict[str, str], seconds_left: float) -> str:
    """What a call gives back; a mistake is said in words, so that the model can mend it."""
    try:
        if name == "read":
            return cut(Path(arguments["path"]).read_text(errors="replace"))
        if name == "write":
            target = Path(arguments["path"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(arguments["content"])
            return f"wrote {len(arguments['content'])} characters"
        if name == "bash":
            return bash(arguments["command"], min(BASH_S, seconds_left))
    except KeyError as missing:
        return f"error: the argument {missing} is missing"
    except OSError as error:
        return f"error: {error}"
    return f"error: there is no tool {name}"


def bash(command: str, timeout: float) -> str:
    """Run a command with all its children; its exit code and what it printed."""
    child = subprocess.Popen(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        printed, _ = child.communicate()
        return f"{cut(printed)}\n[ended after {timeout:.0f} s]"
    return f"{cut(printed)}\n[exit code {child.returncode}]"


def cut(text: str) -> str:
    """Beginning and end of a long text."""
    if len(text) <= LIMIT:
        return text
    half = LIMIT // 2
    return f"{text[:half]}\n[{len(text) - LIMIT} characters left out]\n{text[-half:]}"
