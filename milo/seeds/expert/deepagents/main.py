"""Starts a deep agent, from the source beside this file, on the task that MILO_TASK names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from langchain_core.messages import AnyMessage
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from langgraph.graph.state import CompiledStateGraph

HERE = Path(__file__).resolve().parent
MAX_STEPS = 200


def agent() -> CompiledStateGraph:
    """The agent with all that it works with."""
    model = ChatOpenAI(
        model=os.environ["MILO_MODEL"],
        base_url=os.environ["OPENAI_BASE_URL"],
        use_responses_api=False,
        max_retries=1,
    )
    return create_deep_agent(
        model=model,
        system_prompt=(HERE / "prompt.md").read_text(),
        skills=[str(HERE / "skills")],
        backend=LocalShellBackend(root_dir=os.getcwd(), virtual_mode=False, inherit_env=True),
    )


def shown(message: AnyMessage) -> str:
    """A message in plain words: what was said, what was called."""
    calls = [f"> {call['name']} {call['args']}" for call in getattr(message, "tool_calls", [])]
    return "\n".join([f"== {message.type}", str(message.content), *calls])


def main() -> None:
    """Work on the task, showing every message; with --smoke only put the agent together."""
    made = agent()
    if "--smoke" in sys.argv:
        print(made.get_graph().draw_mermaid())
        return
    task = {"messages": [{"role": "user", "content": Path(os.environ["MILO_TASK"]).read_text()}]}
    seen = 0
    try:
        for state in made.stream(task, config={"recursion_limit": MAX_STEPS}, stream_mode="values"):
            for message in state["messages"][seen:]:
                print(shown(message), flush=True)
            seen = len(state["messages"])
    except GraphRecursionError as error:
        print(error, flush=True)


if __name__ == "__main__":
    main()
