"""What the user sees: every key that can be set, by group, and how it becomes a `RunPlan`.

The groups are those of `conf/`. What depends on the environment (whether a provider's key is
there) is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from milo.agents.pool import needs_model
from milo.app.checks import NOT_HOSTED
from milo.core.budget import Budget
from milo.core.plan import (
    AgentsPlan,
    ClusterPlan,
    ModelPlan,
    RunPlan,
    StrategyPlan,
    SuitePlan,
    TrackingPlan,
)

PROVIDER_KEYS = (
    "ANTHROPIC_API_KEY",
    "AZURE_API_KEY",
    "COHERE_API_KEY",
    "DASHSCOPE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHERAI_API_KEY",
    "XAI_API_KEY",
    "ZAI_API_KEY",
)
"""Environment variables by which providers' keys are given; only their presence is looked at."""


OPENAI_KEY = "OPENAI_API_KEY"
"""Whose value servers that speak OpenAI's format are given where no other is named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedsChoice:
    """The `seeds` group."""

    dirs: tuple[str, ...] = ()
    """Seed harness directories; empty for those that come with MILO."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MutatorsChoice:
    """The `mutators` group."""

    pool: tuple[str, ...] = ("auto",)
    """The pool; ``auto`` is ``agent_loop`` over the named hosted model where a provider's key is
    in the environment, else ``operators``."""
    model: str = ""
    """The litellm model of model-driven mutators and orchestrator; empty for `model.name` where
    that is hosted."""
    judge: str = ""
    """A litellm model that reads every child's patch for task-specific logic; empty for none."""
    registries: tuple[str, ...] = ()
    """Hosts of the package registries that mutators may reach beside their model (names, ``*.``
    patterns, addresses); empty for none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OrchestratorChoice:
    """The `orchestrator` group."""

    kind: str = "auto"
    """``rules``, ``agent``, or ``auto``: ``agent`` where the mutators are model-driven too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Face:
    """Everything that a user can set, by group."""

    run: str = ""
    """The run directory; empty for ``runs/<time>-<suite>``."""
    seed: int = 0
    """Feeds every random generator of the search."""
    replay: str = ""
    """A finished run whose model answers, latencies and moves are replayed."""
    suite: SuitePlan = field(default_factory=SuitePlan)
    """Tasks."""
    model: ModelPlan = field(default_factory=ModelPlan)
    """The frozen model."""
    seeds: SeedsChoice = field(default_factory=SeedsChoice)
    """Where the search starts."""
    mutators: MutatorsChoice = field(default_factory=MutatorsChoice)
    """Who proposes."""
    strategy: StrategyPlan = field(default_factory=StrategyPlan)
    """The search strategy."""
    orchestrator: OrchestratorChoice = field(default_factory=OrchestratorChoice)
    """Who watches over the islands."""
    cluster: ClusterPlan = field(default_factory=ClusterPlan)
    """Placement."""
    budget: Budget = field(default_factory=Budget)
    """Hard limits."""
    tracking: TrackingPlan = field(default_factory=TrackingPlan)
    """Trackers."""


def provider_keys(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The names (never the values) of the providers' keys that are set."""
    return tuple(name for name in PROVIDER_KEYS if environ.get(name, "").strip())


def plan_of(face: Face, has_key: bool) -> RunPlan:
    """The plan that a face stands for; `has_key` says whether a provider's key is at hand."""
    return RunPlan(
        run=face.run,
        seed=face.seed,
        seeds=face.seeds.dirs,
        replay=face.replay,
        suite=face.suite,
        model=face.model,
        strategy=face.strategy,
        agents=_agents(face, has_key),
        budget=face.budget,
        cluster=face.cluster,
        tracking=face.tracking,
    )


def face_of(plan: RunPlan) -> Face:
    """The face that gives this plan again."""
    return Face(
        run=plan.run,
        seed=plan.seed,
        replay=plan.replay,
        suite=plan.suite,
        model=plan.model,
        seeds=SeedsChoice(dirs=plan.seeds),
        mutators=MutatorsChoice(
            pool=plan.agents.mutators,
            model=plan.agents.model,
            judge=plan.agents.judge,
            registries=plan.agents.registries,
        ),
        strategy=plan.strategy,
        orchestrator=OrchestratorChoice(kind=plan.agents.orchestrator),
        cluster=plan.cluster,
        budget=plan.budget,
        tracking=plan.tracking,
    )


def _with_model(mutator: str, hosted: str) -> str:
    """A model-driven mutator that names no model thinks with the run's."""
    return f"{mutator}:{hosted}" if needs_model(mutator) and hosted else mutator


def _agents(face: Face, has_key: bool) -> AgentsPlan:
    """Who proposes and orchestrates, with ``auto`` decided by key and model."""
    hosted = face.mutators.model
    ours = face.model.server.kind or face.model.name in NOT_HOSTED
    if not hosted and not ours:
        hosted = face.model.name
    driven = has_key and bool(hosted)
    default = (f"agent_loop:{hosted}",) if driven else AgentsPlan().mutators
    pool = tuple(
        entry
        for name in face.mutators.pool
        for entry in (default if name == "auto" else (_with_model(name, hosted),))
    )
    kind = face.orchestrator.kind
    if kind == "auto":
        kind = "agent" if driven else "rules"
    return AgentsPlan(
        mutators=pool,
        orchestrator=kind,
        model=hosted,
        judge=face.mutators.judge,
        registries=face.mutators.registries,
    )
