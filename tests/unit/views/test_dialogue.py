from __future__ import annotations

import json
from typing import Any

from milo.core.evidence import Exchange, Trace
from milo.views.dialogue import Said, dialogue_of
from milo.views.dossier import public_trace
from milo.views.showing import trace_text


def exchange(messages: Any, message: Any) -> Exchange:
    response = {"choices": [{"message": message}]} if message is not None else {"error": "down"}
    return Exchange(request={"messages": messages}, response=response, status=200, seconds=1.5)


CALL = {
    "id": "c1",
    "function": {"name": "shell", "arguments": json.dumps({"command": "ls\ncat a.txt", "n": 3})},
}


def test_a_dialogue_tells_commands_and_what_came_of_them() -> None:
    """Without them a reader of a trace sees an agent that says nothing."""
    found = dialogue_of(
        exchange(
            [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "do"}, {"text": "it"}]},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "a.txt\nhello"},
            ],
            {"content": "done", "reasoning_content": "it is there", "tool_calls": [CALL]},
        )
    )
    command = "command: ls\ncat a.txt\nn: 3"
    assert found == (
        Said("system", "be brief"),
        Said("user", "do\nit"),
        Said("assistant calls shell", command),
        Said("tool", "a.txt\nhello"),
        Said("reply thinks", "it is there"),
        Said("reply", "done"),
        Said("reply calls shell", command),
    )


def test_what_has_no_known_form_is_shown_and_not_left_out() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    odd = [{"role": "user", "content": [picture]}, "bare", {"content": 7}]
    calls = [{"function": {"name": "f", "arguments": "{not json"}}, {"odd": 1}]
    found = dialogue_of(exchange(odd, {"tool_calls": calls}))
    assert "image_url" in found[0].words and found[1].words == "bare"
    assert found[2] == Said("message", "7")
    assert found[3] == Said("reply calls f", "{not json") and '"odd"' in found[4].words
    (failed,) = dialogue_of(exchange(None, None))
    assert "down" in failed.words


def test_trace_and_page_show_the_same_dialogue() -> None:
    one = exchange([{"role": "user", "content": "say\x1b[2J it"}], {"content": "said"})
    trace = Trace(exchanges=(one,), stdout="out", verifier_output="EXPECTED")
    text = trace_text("i1.1:t", None, trace)
    assert "--- user\nsay[2J it" in text and "--- reply\nsaid" in text and "EXPECTED" in text
    page = public_trace(trace)
    assert page["calls"] == [
        {"said": [["user", "say\x1b[2J it"], ["reply", "said"]], "seconds": 1.5}
    ]
    assert "EXPECTED" not in json.dumps(page) and page["stdout"] == "out"
