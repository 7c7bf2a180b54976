"""A vLLM server for open-weight backbones: its plan, and how one replica is started.

Source of the options: vLLM's reference of ``vllm serve``. What is asked for by name here is what
a measurement depends on; the rest goes through `extra`. It has been run against a stand-in server
only: no machine with a GPU was at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import ConfigError
from milo.gateway.server_process import Launch, ServerProcess

START_S = 1800.0
"""Loading a hundred billion weights from a cold disk takes this order of time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VllmPlan:
    """One model on the GPUs of one node.

    `gpus` is what one replica needs (tensor parallel). `revision` pins the weights at the hub.
    `tool_parser` and `reasoning_parser` are vLLM's names for the model's own formats ("" for
    none). `program` is the command itself.
    """

    model: str
    served_as: str
    gpus: int = 1
    context: int = 0
    memory_share: float = 0.9
    revision: str = ""
    tool_parser: str = ""
    reasoning_parser: str = ""
    seed: int = 0
    extra: tuple[str, ...] = ()
    program: tuple[str, ...] = ("vllm", "serve")
    start_s: float = START_S

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        if self.gpus < 1:
            raise ConfigError("vllm gpus", "at least 1", str(self.gpus))
        if not 0.0 < self.memory_share <= 1.0:
            raise ConfigError("vllm memory_share", "above 0, at most 1", str(self.memory_share))


def command(plan: VllmPlan, host: str, port: int) -> tuple[str, ...]:
    """The command line of one replica on an address of its node.

    Prompt token details are asked for, because cached tokens would not be told without; requests
    are not logged, because they hold what harnesses ask.
    """
    options = {
        "--host": host,
        "--port": str(port),
        "--served-model-name": plan.served_as,
        "--tensor-parallel-size": str(plan.gpus),
        "--gpu-memory-utilization": f"{plan.memory_share:g}",
        "--seed": str(plan.seed),
        "--max-model-len": str(plan.context) if plan.context else "",
        "--revision": plan.revision,
        "--tool-call-parser": plan.tool_parser,
        "--reasoning-parser": plan.reasoning_parser,
    }
    pairs = [part for key, value in options.items() if value for part in (key, value)]
    flags = ["--enable-prompt-tokens-details", "--disable-uvicorn-access-log"]
    if plan.tool_parser:
        flags.append("--enable-auto-tool-choice")
    return (*plan.program, plan.model, *pairs, *flags, *plan.extra)


def vllm_server(plan: VllmPlan, host: str, log_path: Path) -> ServerProcess:
    """One replica, not started yet, on an address of this node.

    Its GPUs are those that this process may see. It demands a key, because on a cluster other
    nodes reach it, and with them whoever else is there.
    """
    launch = Launch(
        name=f"vLLM with {plan.model}",
        argv=lambda port: command(plan, host, port),
        host=host,
        log_path=log_path,
        start_s=plan.start_s,
        environ={"VLLM_NO_USAGE_STATS": "1"},
        key_variable="VLLM_API_KEY",
    )
    return ServerProcess(launch)
