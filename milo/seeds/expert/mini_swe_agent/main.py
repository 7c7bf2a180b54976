"""Starts mini-SWE-agent, from the source beside this file, on the task that MILO_TASK names."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARGIN_S = 5
SETTINGS = ("minisweagent/config/mini.yaml", "agent.yaml")

os.environ.update(
    {
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        # The gateway has tried again already; a cap that was reached stays reached.
        "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENAI_API_BASE": os.environ["OPENAI_BASE_URL"],
    }
)

import yaml  # noqa: E402
from minisweagent.agents import get_agent  # noqa: E402
from minisweagent.environments import get_environment  # noqa: E402
from minisweagent.models import get_model  # noqa: E402
from minisweagent.utils.serialize import recursive_merge  # noqa: E402


def settings() -> dict[str, dict[str, object]]:
    """The YAML files, the later over the earlier, and what only this attempt knows."""
    left = int(float(os.environ["MILO_DEADLINE"]) - time.time()) - MARGIN_S
    attempt = {
        "agent": {"wall_time_limit_seconds": max(1, left)},
        "model": {"model_name": f"openai/{os.environ['MILO_MODEL']}"},
        "environment": {"cwd": os.getcwd()},
    }
    return recursive_merge(
        *(yaml.safe_load((HERE / name).read_text()) for name in SETTINGS), attempt
    )


def main() -> None:
    """Work on the task; with --smoke make everything and fill in the templates."""
    made = settings()
    agent = get_agent(
        get_model(config=made["model"]),
        get_environment(made["environment"], default_type="local"),
        made["agent"],
        default_type="default",
    )
    if "--smoke" in sys.argv:
        agent.extra_template_vars = {"task": "none"}
        words = [agent.config.system_template, agent.config.instance_template]
        print("\n".join(agent._render_template(text) for text in words))
        return
    try:
        ended = agent.run(Path(os.environ["MILO_TASK"]).read_text())
    finally:
        for message in agent.messages:
            print(f"== {message.get('role')}\n{message.get('content') or ''}", flush=True)
            for action in message.get("extra", {}).get("actions", []):
                print(f"$ {action.get('command')}", flush=True)
    print(ended)


if __name__ == "__main__":
    main()
