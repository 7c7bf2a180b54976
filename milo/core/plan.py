"""The run plan: everything that one run is configured with, as typed values.

`conf/` fills these classes in; unknown keys are refused. A plan is saved with its run, and a
resume compares against it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from milo.core.budget import Budget


class MemoryKind(StrEnum):
    """What a mutator is shown of earlier candidates."""

    FLAT = "flat"
    LINEAGE = "lineage"
    ARCHIVE = "archive"


class SelectionKind(StrEnum):
    """How a parent is chosen."""

    SOFTMAX = "softmax"
    BEST = "best"
    ROOT = "root"
    GAIN = "gain"


class AdmissionKind(StrEnum):
    """What a child must do to be admitted."""

    FRONT = "front"
    PRESERVE = "preserve"


class Signal(StrEnum):
    """What evidence a mutator's attention is drawn to (DarwinX's three signals)."""

    FAILURE = "failure"
    TEACHER = "teacher"
    SELF = "self"


class TestedSeeds(StrEnum):
    """Which seeds are scored on the test split beside the winner."""

    ALL = "all"
    BEST = "best"


class WinnerRule(StrEnum):
    """How the winner is chosen among the validated candidates."""

    ONE_SE = "one_se"
    ACCURACY = "accuracy"


@dataclass(frozen=True, kw_only=True, slots=True)
class SuitePlan:
    """Which tasks, and how they are split."""

    name: str = "deskwork"
    """A built-in suite, or a name for the one at `path`."""
    path: str = ""
    """A folder of tasks; empty for a built-in suite."""
    families: tuple[str, ...] = ()
    """Only these families; empty for all."""
    search: int = 24
    """Tasks to search on."""
    validation: int = 24
    """Tasks to validate on."""
    test: int = 48
    """Tasks to test the frozen winner on; 0 for none."""
    k: int = 0
    """Attempts per task on search and validation; 0 for the suite's own default."""
    split_seed: int = 0
    """Fixes the split."""
    network: str = "no-network"
    """For tasks of a folder that say nothing about it: ``no-network``, or ``public``."""
    seconds: float = 0.0
    """Seconds that a harness has for an attempt; 0 for what each task says."""
    judge: str = ""
    """The litellm model that judges tasks with a ``tests/judge.json``; empty for none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerPlan:
    """Model servers that the run starts itself on the cluster (`model=vllm`)."""

    kind: str = ""
    """``vllm``; empty for none."""
    replicas: int = 1
    """How many there are; calls go to the one with the fewest in flight."""
    gpus: int = 1
    """GPUs of one node that a replica takes (tensor parallel)."""
    cpus: float = 1.0
    """CPUs that a replica takes."""
    gpu_type: str = ""
    """A type of GPU as Ray names it (``H100``); empty for any."""
    context: int = 0
    """Context length in tokens; 0 for the model's own."""
    memory_share: float = 0.9
    """Share of each GPU's memory that the server may take."""
    revision: str = ""
    """The revision of the weights at the hub; empty for the newest."""
    tool_parser: str = ""
    """vLLM's name for the model's format of tool calls; empty for none."""
    reasoning_parser: str = ""
    """vLLM's name for the model's format of reasoning; empty for none."""
    args: tuple[str, ...] = ()
    """More arguments of ``vllm serve``."""
    program: str = "vllm"
    """The command that is vLLM, on every node with a replica."""
    start_minutes: float = 30.0
    """How long loading the weights may take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelPlan:
    """The frozen model and what one attempt may ask of it."""

    name: str = "local"
    """``local``, ``local-small``, or any litellm model."""
    path: str = ""
    """A GGUF file for ``local``; empty for the built-in weights."""
    base_url: str = ""
    """An OpenAI-compatible server to use instead of the provider's own; it is asked for `name`."""
    key_variable: str = ""
    """The environment variable with the key, such as ``MY_SERVER_KEY``; empty for the provider's
    own, which is ``OPENAI_API_KEY`` with a `base_url`."""
    prices: str = ""
    """A JSON file of prices by model, dollars per million tokens, before litellm's own."""
    temperature: float | None = None
    """Pins the temperature of every call; None leaves it to the harness."""
    max_calls: int = 12
    """Model calls per attempt."""
    max_tokens: int = 24_000
    """Tokens per attempt, input and output together."""
    max_output_tokens: int = 512
    """Output tokens per call."""
    call_seconds: float = 300.0
    """Seconds after which a call is given up and tried again."""
    context: int = 4096
    """Context length of an embedded model, tokens per request."""
    parallel: int = 4
    """Requests that an embedded model works on at once."""
    threads: int = 0
    """Threads of an embedded model; 0 for the machine's cores."""
    requests_per_minute: int = 0
    """The provider's limit on requests, shared by all nodes of the run; 0 for none declared."""
    tokens_per_minute: int = 0
    """The provider's limit on tokens, prompt and reply together; 0 for none declared."""
    server: ServerPlan = field(default_factory=ServerPlan)
    """A server of open weights that the run starts itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectionPlan:
    """Parent selection (SPEC §4.1)."""

    kind: SelectionKind = SelectionKind.SOFTMAX
    """softmax, best (ablations A and B), root (independent mutations of the seeds), or gain
    (DarwinX: the highest lineage gain among the confirmed, else broaden)."""
    alpha: float = 0.5
    """Weight of dominance against behavioural similarity."""
    tau: float = 0.25
    """Temperature of the softmax."""
    beta: float = 0.2
    """Chance that gain broadens over all that preserve their parent's solves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmissionPlan:
    """Child acceptance (SPEC §4.4)."""

    alpha: float = 0.05
    """Share of bootstraps that may show no gain; 1 gives the plain rule."""
    epsilon: float = 0.0
    """Hypervolume that a child must add."""
    bootstraps: int = 200
    """Task-level bootstraps of child and front jointly."""
    kind: AdmissionKind = AdmissionKind.FRONT
    """front (the Pareto front grows), or preserve (DarwinX: extend without breaking)."""
    delta: float = 1.0
    """Solve rate, summed over tasks, that a child may lose against its parent (preserve)."""
    probe: int = 2
    """Times k more attempts on the parent's solved tasks before a promotion (preserve)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StrategyPlan:
    """A search strategy as a composition of parts (SPEC §5)."""

    name: str = "milo"
    """As reports call it."""
    islands: int = 3
    """Islands at the start; 1 searches from the best seed."""
    selection: SelectionPlan = field(default_factory=SelectionPlan)
    """Parent selection."""
    memory: MemoryKind = MemoryKind.LINEAGE
    """What mutators are shown of earlier candidates."""
    admission: AdmissionPlan = field(default_factory=AdmissionPlan)
    """Child acceptance."""
    orchestrator: bool = True
    """Whether stalled islands escalate."""
    patience: int = 3
    """P: rounds without a better validation accuracy before an island is stalled."""
    mutation_tries: int = 3
    """Proposals per child before it is recorded invalid."""
    winner: WinnerRule = WinnerRule.ONE_SE
    """How the winner is chosen."""
    tested_seeds: TestedSeeds = TestedSeeds.ALL
    """Seeds scored on the test split beside the winner: all, or the best on validation."""
    pipeline_depth: int = 1
    """Children of one island proposed at once. 1: each when the last is judged (SPEC §4). n > 1:
    up to n are proposed while as many are scored, each from the lineage as it stood 5n/2 rounds
    before its own, which is on record. Not with merge or admission.kind=preserve."""
    merge: bool = False
    """Whether members that solve different tasks are merged (kept if the union is covered)."""
    signals: tuple[Signal, ...] = ()
    """Evidence that mutators are pointed to: failure, teacher, self."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentsPlan:
    """Who proposes and who orchestrates."""

    mutators: tuple[str, ...] = ("operators", "operators-context", "operators-prompt")
    """The pool, in the order in which islands get them; ``NAME`` or ``NAME:MODEL``."""
    orchestrator: str = "rules"
    """``rules``, or ``agent``."""
    model: str = ""
    """The litellm model of model-driven mutators and orchestrator."""
    judge: str = ""
    """A litellm model that reads every child's patch for task-specific logic; empty for none."""
    registries: tuple[str, ...] = ()
    """Hosts of the package registries that mutators may reach beside their model; empty for
    none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterPlan:
    """Where the run runs."""

    address: str = ""
    """A Ray cluster to join; empty starts one on this machine."""
    slots: int = 8
    """Attempts at once on each container host."""
    resource: str = ""
    """A custom Ray resource that marks container hosts: only nodes that offer it get one, with as
    many slots as they have of it, at most `slots`; empty for every node with a CPU."""
    sandbox: str = "auto"
    """``bubblewrap``, ``plain`` (weaker), or ``auto``: the stronger of the two that works here;
    ``docker`` for containers on each host's engine, which tasks with images need."""
    image: str = "python:3.11-slim"
    """``docker`` only: the image for tasks that bring none; it must hold python3 and a shell."""
    images_gb: float = 40.0
    """``docker`` only: what images of tasks may take on each host's disk."""
    attempt_retries: int = 2
    """Times an attempt with an infrastructure fault is tried again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackingPlan:
    """Who follows the run."""

    wandb: str = "auto"
    """``auto`` (offline where wandb is installed), ``offline``, ``online`` or ``off``."""
    project: str = "milo"
    """The wandb project."""
    group: str = ""
    """The wandb group; empty for the run's own name, or its multirun's."""
    tensorboard: bool = False
    """Whether TensorBoard event files are written beside the records."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """One run."""

    run: str = ""
    """The run directory; empty for ``runs/<time>-<suite>``."""
    seed: int = 0
    """Feeds every random generator of the search."""
    seeds: tuple[str, ...] = ()
    """Seed harness directories; empty for the three that come with MILO."""
    replay: str = ""
    """A finished run whose model answers, latencies and moves are replayed."""
    suite: SuitePlan = field(default_factory=SuitePlan)
    """Tasks."""
    model: ModelPlan = field(default_factory=ModelPlan)
    """The frozen model."""
    strategy: StrategyPlan = field(default_factory=StrategyPlan)
    """The search strategy."""
    agents: AgentsPlan = field(default_factory=AgentsPlan)
    """Mutators and orchestrator."""
    budget: Budget = field(default_factory=Budget)
    """Hard limits."""
    cluster: ClusterPlan = field(default_factory=ClusterPlan)
    """Placement."""
    tracking: TrackingPlan = field(default_factory=TrackingPlan)
    """Trackers."""
