"""A scripted model that works through whatever tools a harness or a coding agent offers it.

Where it stands is read from each request, so that programs may ask beside their work (titles,
summaries), and several attempts may share one model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from milo.testing.scripted_model import Answer, Script

Json = Mapping[str, object]
SHELLS = (
    "Bash",
    "bash",
    "run_shell_command",
    "exec_command",
    "shell_command",
    "shell",
    "execute",
    "execute_command",
    "run_commands",
    "run_command",
    "Shell",
    "terminal",
)
"""What shell tools are called, the likeliest first."""
KEYSTROKES = "keystrokes"
"""A prompt with this word asks for a terminal's keys, in a JSON object."""
WORDS = "Done."


def doing(command: Mapping[str, str]) -> Script:
    """Runs the command whose key stands in the conversation, once, then says that it is done."""

    def script(request: Json, nth: int) -> Answer:
        messages: Sequence[Json] = request["messages"]  # type: ignore[assignment]
        text = json.dumps(messages, ensure_ascii=False)
        found = next((value for key, value in command.items() if quoted(key) in text), None)
        if found is None:
            return Answer(text=WORDS)
        shell = shell_among(request.get("tools") or ())  # type: ignore[arg-type]
        if shell is not None:
            done = sum(message.get("role") == "tool" for message in messages)
            return called(shell, found, done)
        if KEYSTROKES in text:
            return typed(found, sum(message.get("role") == "assistant" for message in messages))
        return Answer(text=WORDS)

    return script


def quoted(text: str) -> str:
    """A text as it stands inside a JSON document."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def called(shell: tuple[str, Json], command: str, done: int) -> Answer:
    """The command as a tool call, then whatever ends the work."""
    call = (shell[0], arguments(shell[1], command)) if not done else submission(shell, done - 1)
    if call is None:
        return Answer(text=WORDS)
    function = {"name": call[0], "arguments": json.dumps(call[1])}
    one = {"id": f"call_{done}", "type": "function", "function": function}
    return Answer(tool_calls=(one,), finish_reason="tool_calls")


def typed(command: str, done: int) -> Answer:
    """The command as keys, then the word that it is complete, as often as it is asked for."""
    keys = {"keystrokes": f"{command}\n", "duration": 20}
    answer = {"analysis": "-", "plan": "-", "commands": [] if done else [keys]}
    return Answer(text=json.dumps({**answer, "task_complete": bool(done)}))


def submission(tool: tuple[str, Json], after: int) -> tuple[str, Json] | None:
    """mini-SWE-agent ends by a command; the others by saying nothing more to do."""
    properties = tool[1].get("properties") or {}
    if tool[0] != "bash" or list(properties) != ["command"] or after:  # type: ignore[call-overload]
        return None
    return tool[0], {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}


def shell_among(tools: Sequence[Json]) -> tuple[str, Json] | None:
    """The tool that runs shell commands, with its parameters' schema."""
    by_name: dict[str, Json] = {}
    for tool in tools:
        function = tool.get("function")
        if isinstance(function, Mapping):
            by_name[function["name"]] = function.get("parameters") or {}
    for name in SHELLS:
        if name in by_name:
            return name, by_name[name]
    return None


def arguments(schema: Json, command: str) -> Json:
    """Arguments for a shell tool of any of the usual forms."""
    properties: Mapping[str, Json] = schema.get("properties") or {}  # type: ignore[assignment]
    required = schema.get("required") or []
    given: dict[str, object] = {}
    for name, about in properties.items():
        if name in ("command", "cmd", "script"):
            is_list = about.get("type") == "array"
            given[name] = ["bash", "-lc", command] if is_list else command
        elif name == "commands":
            given[name] = [command]
        elif name in required:  # type: ignore[operator]
            kinds = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}
            given[name] = kinds.get(str(about.get("type")), "do the task")
    return given
