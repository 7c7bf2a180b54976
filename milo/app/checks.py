"""Which values a plan may hold: ranges and choices that types alone cannot say.

Everything here is refused before anything is started or spent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from milo.agents.cli.description import load
from milo.agents.peer import PEERS
from milo.agents.pool import MODEL_DRIVEN, OFFLINE, is_described
from milo.app.convert import flat, nearest
from milo.app.registries import reach_of
from milo.core.errors import ConfigError
from milo.core.plan import AdmissionKind, RunPlan
from milo.core.redaction import SECRET_NAME, secrets_in_address


class Rule(NamedTuple):
    """What a value must satisfy, in words and as a predicate."""

    expected: str
    holds: Callable[[Any], bool]


def _at_least(low: float) -> Rule:
    return Rule(f"a number of at least {low:g}", lambda v: math.isfinite(v) and v >= low)


def _above(low: float) -> Rule:
    return Rule(f"a number above {low:g}", lambda v: math.isfinite(v) and v > low)


def _share() -> Rule:
    return Rule("a number between 0 and 1", lambda v: 0 <= v <= 1)


def _one_of(*words: str) -> Rule:
    return Rule(f"one of {', '.join(words)}", lambda v: v in words)


def _filled() -> Rule:
    return Rule("some text", lambda v: bool(str(v).strip()))


def rules() -> Mapping[str, Rule]:
    """The rule of every dotted plan key that has one; a value of null satisfies every rule."""
    return {
        "seed": _at_least(0),
        "suite.name": _filled(),
        "suite.search": _at_least(1),
        "suite.validation": _at_least(1),
        "suite.test": _at_least(0),
        "suite.k": _at_least(0),
        "suite.split_seed": _at_least(0),
        "suite.seconds": _at_least(0),
        "suite.network": _one_of("no-network", "public"),
        **_model_rules(),
        "strategy.islands": _at_least(1),
        "strategy.selection.alpha": _share(),
        "strategy.selection.tau": _above(0),
        "strategy.selection.beta": _share(),
        "strategy.admission.alpha": _share(),
        "strategy.admission.epsilon": _at_least(0),
        "strategy.admission.bootstraps": _at_least(1),
        "strategy.admission.delta": _at_least(0),
        "strategy.admission.probe": _at_least(0),
        "strategy.patience": _at_least(1),
        "strategy.mutation_tries": _at_least(1),
        "strategy.pipeline_depth": _at_least(1),
        "agents.orchestrator": _one_of("rules", "agent"),
        "budget.rounds": _at_least(0),
        "budget.hours": _above(0),
        "budget.attempts": _at_least(1),
        "budget.tokens": _at_least(1),
        "budget.dollars": _above(0),
        "cluster.slots": _at_least(1),
        "cluster.address": Rule(
            "HOST:PORT or auto (records stay on a node of the cluster: no Ray Client)",
            lambda v: v in ("", "auto") or bool(CLUSTER_ADDRESS.fullmatch(v)),
        ),
        "cluster.resource": Rule(
            f"a name of your own, or none; {', '.join(RAYS_OWN)} and node:… are Ray's",
            lambda v: v not in RAYS_OWN and not v.startswith("node:"),
        ),
        "cluster.sandbox": _one_of("auto", "bubblewrap", "plain", "docker"),
        "cluster.image": _filled(),
        "cluster.images_gb": _above(0),
        "cluster.attempt_retries": _at_least(0),
        "tracking.wandb": _one_of("auto", "offline", "online", "off"),
    }


def _model_rules() -> Mapping[str, Rule]:
    return {
        "model.name": _filled(),
        "model.key_variable": Rule(
            "the name of a variable that says that it holds a key, such as MY_SERVER_KEY",
            lambda v: not v or (v.isidentifier() and v.isupper() and bool(SECRET_NAME.search(v))),
        ),
        "model.temperature": _at_least(0),
        "model.max_calls": _at_least(1),
        "model.max_tokens": _at_least(1),
        "model.max_output_tokens": _at_least(1),
        "model.call_seconds": _above(0),
        "model.context": _at_least(256),
        "model.parallel": _at_least(1),
        "model.threads": _at_least(0),
        "model.requests_per_minute": _at_least(0),
        "model.tokens_per_minute": _at_least(0),
        "model.server.kind": _one_of("", "vllm"),
        "model.server.replicas": _at_least(1),
        "model.server.gpus": _at_least(1),
        "model.server.cpus": _at_least(0),
        "model.server.context": _at_least(0),
        "model.server.memory_share": Rule("a number above 0, at most 1", lambda v: 0 < v <= 1),
        "model.server.program": _filled(),
        "model.server.start_minutes": _above(0),
    }


def check(plan: RunPlan) -> None:
    """Raise `ConfigError` for the first value that its rule refuses, or an impossible pairing."""
    values = flat(plan)
    for key, rule in rules().items():
        if values[key] is not None and not rule.holds(values[key]):
            shown = "another text" if key in NEVER_SHOWN else repr(values[key])
            raise ConfigError(key, rule.expected, shown)
    _check_pipeline(plan)
    if not plan.agents.mutators:
        raise ConfigError("mutators", "at least one mutator", "an empty list")
    for name in plan.agents.mutators:
        _check_mutator(name, plan)
    reach_of(plan.agents.registries)
    _check_address(plan.model.base_url)
    if plan.agents.orchestrator == "agent" and not plan.agents.model:
        raise ConfigError(
            "orchestrator=agent", "a model that it thinks with (mutators.model=NAME)", "none"
        )
    if plan.model.server.kind and (plan.model.base_url or plan.model.name in NOT_HOSTED):
        raise ConfigError(
            "model.server.kind",
            "a model.name at the hub or a folder of weights, and no model.base_url",
            f"model.name={plan.model.name}",
        )
    nobodys = plan.model.server.kind or plan.model.name in NOT_HOSTED
    if plan.model.key_variable and nobodys and not plan.model.base_url:
        raise ConfigError(
            "model.key_variable", "a hosted model, or model.base_url", f"model={plan.model.name}"
        )
    if plan.model.path and plan.model.name not in LOCAL_MODELS:
        raise ConfigError(
            "model.path", f"model={LOCAL_MODELS[0]} beside it", f"model.name={plan.model.name}"
        )


def _check_pipeline(plan: RunPlan) -> None:
    """Merges join the newest child with another, a promotion needs its parent's verdict, and a peer
    waits for the score of the candidate that it asked for."""
    strategy = plan.strategy
    peers = any(name.partition(":")[0] in PEERS for name in plan.agents.mutators)
    ordered = peers or strategy.merge or strategy.admission.kind is AdmissionKind.PRESERVE
    if strategy.pipeline_depth > 1 and ordered:
        raise ConfigError(
            "strategy.pipeline_depth",
            "1 with strategy.merge, admission.kind=preserve, or a peer as mutator",
            str(strategy.pipeline_depth),
        )


def _check_address(address: str) -> None:
    """An address is empty, or one that can be called; nothing is called here."""
    if secrets_in_address(address):
        raise ConfigError(  # without the value: what is refused is not shown either
            "model.base_url",
            "an address without password or key (keys are read from the environment)",
            "one that holds a secret",
        )
    try:
        parts = urlsplit(address)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that don't match, or a port that is no number
        whole = False
    if address and (not whole or any(char.isspace() for char in address)):
        found = "another" if "@" in address else repr(address)
        raise ConfigError("model.base_url", "an address like http://HOST:PORT/v1", found)


CLUSTER_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}")
"""A host's name or address, in brackets where it holds colons, and a port."""

RAYS_OWN = ("CPU", "GPU", "memory", "object_store_memory")
"""Resources that Ray counts itself: nobody can set slots aside in them."""

NEVER_SHOWN = frozenset({"model.key_variable"})
"""Keys whose value may be a secret where it is wrong."""

LOCAL_MODELS = ("local", "local-small")
"""Models that MILO itself serves."""

NO_MODEL = "none"
"""The model of a run whose harnesses need none."""

NOT_HOSTED = (*LOCAL_MODELS, NO_MODEL)
"""Names that no provider stands behind."""

OWN_MUTATOR = "python"
"""The name that a mutator of the user's own begins with: ``python:MODULE:NAME``."""


def mutators() -> Mapping[str, bool]:
    """The mutators by name, and whether they think with a model."""
    offline = dict.fromkeys((*OFFLINE, OWN_MUTATOR), False)
    return {**offline, **dict.fromkeys(MODEL_DRIVEN, True)}


def _check_mutator(entry: str, plan: RunPlan) -> None:
    known = dict(mutators())
    name, _, model = entry.partition(":")
    if is_described(name):
        load(name)
        known[name] = True
    if name not in known:
        meant = nearest(name, known)
        hint = f" ({meant!r}?)" if meant else ""
        raise ConfigError(f"mutator {entry!r}", f"one of {', '.join(known)}{hint}", repr(name))
    if known[name] and not (model or plan.agents.model):
        raise ConfigError(
            f"mutator {entry!r}",
            f"a model to think with ({name}:MODEL, or mutators.model=MODEL)",
            "none",
        )
