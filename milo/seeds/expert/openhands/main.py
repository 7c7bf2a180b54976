"""Starts an OpenHands agent, from the source beside this file, on the task that MILO_TASK names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.update({"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"})

from openhands.sdk import LLM, Agent, Conversation
from openhands.tools.preset.default import get_default_agent

MAX_STEPS = 60
STATE = Path("/tmp/openhands")
"""Beside the folder that the task takes place in."""


def agent() -> Agent:
    """The agent with its tools; the gateway tries again itself."""
    model = LLM(
        model=f"openai/{os.environ['MILO_MODEL']}",
        api_key=os.environ["OPENAI_API_KEY"],
        base_url=os.environ["OPENAI_BASE_URL"],
        num_retries=1,
        usage_id="agent",
    )
    return get_default_agent(llm=model, cli_mode=True)


def main() -> None:
    """Work on the task; with --smoke only put agent and conversation together."""
    conversation = Conversation(
        agent=agent(),
        workspace=os.getcwd(),
        persistence_dir=STATE,
        max_iteration_per_run=MAX_STEPS,
    )
    if "--smoke" in sys.argv:
        print("ok")
        return
    try:
        conversation.send_message(Path(os.environ["MILO_TASK"]).read_text())
        conversation.run()
    finally:
        conversation.close()


if __name__ == "__main__":
    main()
