"""A vLLM server for open-weight backbones: its plan, and how its replicas are started.

Source of the options: vLLM's reference of ``vllm serve``. What is asked for by name here is what
a measurement depends on; the rest goes through `extra`. It has been run against a stand-in server
only: no machine with a GPU was at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import ConfigError
from milo.gateway.server_process import Launch, ServerProcess

START_S = 1800.0
"""Loading a hundred billion weights from a cold disk takes this order of time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VllmPlan:
    """One model on the GPUs of one node.

    `gpus` is what one replica needs (tensor parallel), `replicas` how many there are. `revision`
    pins the weights at the hub. `tool_parser` and `reasoning_parser` are vLLM's names for the
    model's own formats ("" for none). `program` is the command itself.
    """

    model: str
    served_as: str
    gpus: int = 1
    replicas: int = 1
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
        for name in ("gpus", "replicas"):
            if getattr(self, name) < 1:
                raise ConfigError(f"vllm {name}", "at least 1", str(getattr(self, name)))
        if not 0.0 < self.memory_share <= 1.0:
            raise ConfigError("vllm memory_share", "above 0, at most 1", str(self.memory_share))


def command(plan: VllmPlan, port: int) -> tuple[str, ...]:
    """The command line of one replica on a loopback port.

    Prompt token details are asked for, because cached tokens would not be told without; requests
    are not logged, because they hold what harnesses ask.
    """
    options = {
        "--host": "127.0.0.1",
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


def placed(plan: VllmPlan, gpus: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The node's GPUs for each replica, by index; raises `ConfigError` where they don't suffice."""
    needed = plan.gpus * plan.replicas
    if len(gpus) < needed:
        raise ConfigError(
            f"{plan.replicas} replicas of {plan.model}",
            f"{needed} GPUs on this node ({plan.gpus} each)",
            f"{len(gpus)}",
        )
    starts = range(0, needed, plan.gpus)
    return tuple(tuple(gpus[start : start + plan.gpus]) for start in starts)


def replicas(
    plan: VllmPlan, gpus: Sequence[int], ports: Sequence[int], logs: Path
) -> tuple[ServerProcess, ...]:
    """The servers of one node, not started yet; one port each."""
    servers = []
    for nth, (own, port) in enumerate(zip(placed(plan, gpus), ports, strict=True)):
        visible = ",".join(str(gpu) for gpu in own)
        launch = Launch(
            name=f"vLLM replica {nth} of {plan.model} on GPU {visible}",
            argv=command(plan, port),
            address=f"http://127.0.0.1:{port}",
            log_path=logs / f"vllm-{nth}.log",
            start_s=plan.start_s,
            environ={"CUDA_VISIBLE_DEVICES": visible, "VLLM_NO_USAGE_STATS": "1"},
        )
        servers.append(ServerProcess(launch))
    return tuple(servers)
