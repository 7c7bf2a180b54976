"""The mutator pool: what the names in a plan stand for.

| entry | what it is |
| --- | --- |
| ``operators`` | every operator, weighted by the evidence alone |
| ``operators-context`` | prefers context, tool use, verification and other control flow |
| ``operators-prompt`` | prefers prompts, examples, parsing and sampling |
| ``operators-frugal`` | prefers cuts of tokens and calls |
| ``arena``, ``arena-tune``, ``arena-recombine`` | schedules of optimizer programs |
| ``single_call:MODEL`` | one answer of a litellm model is the edit |
| ``agent_loop:MODEL`` | a litellm model edits step by step with tools |
| ``claude_code:MODEL``, … | a coding agent over a litellm model (`milo/agents/cli/*.yaml`) |
| ``gepa:MODEL``, … | a search method of another package (`milo/agents/peers/*.yaml`) |
| ``FILE.yaml:MODEL`` | a coding agent that the user describes in a file |
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from milo.agents.agent_loop import AgentLoopMutator
from milo.agents.arena_operators import mutator as arena
from milo.agents.cli.description import SUFFIX, load
from milo.agents.cli_agent import CliAgentMutator
from milo.agents.operators.mutator import OperatorMutator
from milo.agents.operators.operator import Emphasis
from milo.agents.peer import PEERS, PeerMutator
from milo.agents.single_call import SingleCallMutator
from milo.core.errors import ConfigError
from milo.core.ports import Mutator
from milo.core.station import Station

AGENTS = (
    "claude_code",
    "cline",
    "codex",
    "deepagents",
    "goose",
    "kimi",
    "mini_swe_agent",
    "opencode",
    "qwen_code",
)
"""Coding agents that come with a description."""
MODEL_DRIVEN = ("single_call", "agent_loop", *AGENTS, *PEERS)
OFFLINE = ("operators", *(f"operators-{emphasis}" for emphasis in Emphasis), *arena.NAMES)


def is_described(kind: str) -> bool:
    """Whether a pool entry's name is the path of a description."""
    return kind.endswith(SUFFIX)


def is_program(spec: str) -> bool:
    """Whether a pool entry is a program that asks its model on its own: an agent, or a peer."""
    kind = spec.partition(":")[0]
    return kind in (*AGENTS, *PEERS) or is_described(kind)


def needs_model(kind: str) -> bool:
    """Whether a pool entry's name stands for a mutator that thinks with a model."""
    return kind in MODEL_DRIVEN or is_described(kind)


def make_mutator(spec: str, station: Callable[[], Station] | None = None) -> Mutator:
    """The mutator that a pool entry names; raises `ConfigError` with the nearest known name.

    Coding agents run in the station that `station` opens; without one they are refused.
    """
    kind, _, model = spec.partition(":")
    if spec in arena.NAMES:
        return arena.ArenaMutator(spec)
    if spec in OFFLINE:
        emphasis = spec.removeprefix("operators").removeprefix("-")
        return OperatorMutator(spec, Emphasis(emphasis) if emphasis else None)
    if needs_model(kind):
        if not model:
            raise ConfigError(f"mutator {spec!r}", f"a model, as in {kind}:MODEL", "none")
        return _driven(kind, model, station)
    known = (*OFFLINE, *MODEL_DRIVEN)
    nearest = difflib.get_close_matches(kind, known, n=1, cutoff=0.0)[0]
    expected = f"one of {', '.join(known)} (nearest: {nearest})"
    raise ConfigError(f"mutator {spec!r}", expected, "it")


def _driven(kind: str, model: str, station: Callable[[], Station] | None) -> Mutator:
    if kind == "single_call":
        return SingleCallMutator(model)
    if kind == "agent_loop":
        return AgentLoopMutator(model)
    if station is None:
        raise ConfigError(f"mutator {kind!r}", "a place to run programs in", "none")
    if kind in PEERS:
        return PeerMutator(load(kind), f"{kind}:{model}", station())
    return CliAgentMutator(load(kind), f"{kind}:{model}", station())


def model_of(spec: str) -> str:
    """The litellm model that a pool entry needs; "" for one that needs none."""
    kind, _, model = spec.partition(":")
    return model if needs_model(kind) else ""
