"""The mutator pool: what the names in a plan stand for.

| entry | what it is |
| --- | --- |
| ``operators`` | every operator, weighted by the evidence alone |
| ``operators-context`` | prefers context, tool use, verification and other control flow |
| ``operators-prompt`` | prefers prompts, examples, parsing and sampling |
| ``operators-frugal`` | prefers cuts of tokens and calls |
| ``single_call:MODEL`` | one answer of a litellm model is the edit |
| ``agent_loop:MODEL`` | a litellm model edits step by step with tools |
"""

from __future__ import annotations

import difflib

from milo.agents.agent_loop import AgentLoopMutator
from milo.agents.operators.mutator import OperatorMutator
from milo.agents.operators.operator import Emphasis
from milo.agents.single_call import SingleCallMutator
from milo.core.errors import ConfigError
from milo.core.ports import Mutator

MODEL_DRIVEN = ("single_call", "agent_loop")
OFFLINE = ("operators", *(f"operators-{emphasis}" for emphasis in Emphasis))


def make_mutator(spec: str) -> Mutator:
    """The mutator that a pool entry names; raises `ConfigError` with the nearest known name."""
    kind, _, model = spec.partition(":")
    if spec in OFFLINE:
        emphasis = spec.removeprefix("operators").removeprefix("-")
        return OperatorMutator(spec, Emphasis(emphasis) if emphasis else None)
    if kind in MODEL_DRIVEN:
        if not model:
            raise ConfigError(f"mutator {spec!r}", f"a model, as in {kind}:MODEL", "none")
        return SingleCallMutator(model) if kind == "single_call" else AgentLoopMutator(model)
    known = (*OFFLINE, *MODEL_DRIVEN)
    nearest = difflib.get_close_matches(kind, known, n=1, cutoff=0.0)[0]
    expected = f"one of {', '.join(known)} (nearest: {nearest})"
    raise ConfigError(f"mutator {spec!r}", expected, "it")


def model_of(spec: str) -> str:
    """The litellm model that a pool entry needs; "" for one that needs none."""
    kind, _, model = spec.partition(":")
    return model if kind in MODEL_DRIVEN else ""
