"""The model, reached over OpenAI chat completions."""

from __future__ import annotations

import json
import os
import time
import urllib.request

END_OF_BLOCK = "\n```\n"


def seconds_left() -> float:
    """Seconds until the deadline, at least one."""
    return max(1.0, float(os.environ["MILO_DEADLINE"]) - time.time())


def chat(system: str, user: str) -> str:
    """One completion of a system and a user message; the text of the reply."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions",
        data=json.dumps(
            {"model": os.environ["MILO_MODEL"], "messages": messages, "stop": [END_OF_BLOCK]}
        ).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
    )
    with urllib.request.urlopen(request, timeout=seconds_left()) as response:
        return json.load(response)["choices"][0]["message"]["content"] or ""
