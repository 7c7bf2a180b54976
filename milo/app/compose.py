"""How a run is put together from its plan: the factories that the runtime calls.

`AppParts` is picklable and holds no secret: each process builds its own pieces from the plan,
and reads its own environment for provider keys.
"""

from __future__ import annotations

import importlib
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from milo.app.checks import LOCAL_MODELS, NO_MODEL, OWN_MUTATOR
from milo.app.face import OPENAI_KEY, provider_keys
from milo.app.leftovers import Leftovers, owner_of, temporary_folder
from milo.app.model_caller import JudgeCaller, SessionCaller
from milo.app.model_servers import demand_of, served_name, server_of
from milo.app.no_model import NoUpstream
from milo.app.numeric import equipped
from milo.app.packages import Shelf, check_packages, programs_folder
from milo.app.pricing import target_price
from milo.app.registries import reach_of
from milo.app.sandbox_shell import SandboxShell
from milo.app.sandboxes import choose_sandbox
from milo.app.station import AgentStation
from milo.app.weights import local_weights
from milo.core.attempt import Usage
from milo.core.calls import Purse
from milo.core.errors import ConfigError
from milo.core.judge import JudgeModel
from milo.core.packages import Packages
from milo.core.plan import ModelPlan, RunPlan
from milo.core.ports import Caps, Mutator, Orchestrator, Upstream
from milo.core.redaction import SHORTEST, secrets_of
from milo.core.servers import ModelServer, ServerDemand
from milo.core.task import Suite
from milo.gateway.http_upstream import HttpUpstream
from milo.gateway.line import Line, Policy
from milo.gateway.litellm_upstream import LitellmUpstream
from milo.gateway.llama_server import ServerSettings, embedded_server
from milo.gateway.pace import Pace
from milo.gateway.paying import checked
from milo.gateway.pins import SAMPLING_OF_LLAMA, Pins, model_label
from milo.gateway.price_book import PriceBook
from milo.gateway.prices import FREE, Price
from milo.gateway.proxy import Gateway
from milo.gateway.replay_upstream import ReplayUpstream
from milo.gateway.replica_upstream import ReplicaUpstream
from milo.rollout.local import KINDS, choose
from milo.rollout.runner import LocalAttemptRunner, check_judged, check_needs
from milo.runtime.parts import HostParts, ModelCaller
from milo.search.referee import check_answer, next_island
from milo.search.rules import RulesOrchestrator
from milo.store.replay import ReplaySource
from milo.store.run_store import RunStore
from milo.suites.suite import load_suite


class SystemClock:
    """The machine's time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()


def provider_secrets() -> Mapping[str, str]:
    """The providers' keys that this process's environment holds, by name; never recorded."""
    return {name: os.environ[name] for name in provider_keys(os.environ)}


def key_of(model: ModelPlan) -> str:
    """The key that the frozen model's provider is given; "" leaves it to litellm, or gives none."""
    named = model.key_variable or (OPENAI_KEY if model.base_url else "")
    return os.environ.get(named, "").strip()


def require_key(plan: RunPlan) -> None:
    """Refuse a `model.key_variable` that this process's environment lacks."""
    if plan.model.key_variable and not plan.replay and not key_of(plan.model):
        raise ConfigError(
            "model.key_variable", "a variable of the environment", plan.model.key_variable
        )


def all_secrets() -> tuple[str, ...]:
    """Everything secret that this process's environment holds: it may stand in no record."""
    found = {*provider_secrets().values(), *secrets_of(os.environ).values()}
    return tuple(sorted(secret for secret in found if len(secret) >= SHORTEST))


@dataclass(frozen=True, kw_only=True)
class AppParts:
    """Implements the runtime's `Parts` for the adapters that come with MILO.

    `path` is the absolute run directory, `prices` its price book, `packages` what the seeds need on
    every host. Calls build anew; the suite is read once and travels along, since another machine
    has no folder of it, or a different one, and the recording is read once per process.
    """

    plan: RunPlan
    path: Path
    prices: PriceBook = field(default_factory=PriceBook)
    purse: Purse | None = None
    servers: tuple[ModelServer, ...] = ()
    packages: tuple[Packages, ...] = ()
    carried: Suite | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> Mapping[str, object]:
        """What another process is given: the suite as it was read here."""
        return {**self.__dict__, "carried": self.suite()}

    def server_demand(self) -> ServerDemand | None:
        """What the model servers of the run take of the cluster; None where it starts none."""
        return None if self.plan.replay else demand_of(self.plan.model)

    def model_server(self, host: str, nth: int) -> ModelServer:
        """One replica, not started yet, on an address of this node."""
        folder = temporary_folder(owner_of(self.path))
        return server_of(self.plan.model, host, folder / f"vllm-{nth}.log")

    def served(self, servers: Sequence[ModelServer]) -> AppParts:
        """The same factories, with the run's model servers to call."""
        return replace(self, servers=tuple(servers))

    def funded(self, purse: Purse) -> AppParts:
        """The same factories, whose model calls are paid from this purse."""
        return replace(self, purse=purse)

    def suite(self) -> Suite:
        """The tasks and their splits."""
        return self.carried or _suite(self.plan)

    def open_records(self) -> RunStore:
        """The run directory, owned by this process from now on."""
        return RunStore.open(self.path, clock=SystemClock())

    async def open_host(self, name: str) -> HostParts:
        """Sandbox, gateway and runner of one node."""
        sandbox = equipped(choose_sandbox(self.plan.cluster), self.suite().tasks.values())
        for task in self.suite().tasks.values():
            check_needs(task, sandbox)
            check_judged(task)
        find = Shelf(programs_folder()).find
        check_packages(self.packages, find)
        owner = owner_of(self.path)
        await self.sweeper().sweep()
        scratch = temporary_folder(owner)
        try:
            line, gateway = await self._open_gateway(scratch)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise

        async def close() -> None:
            await gateway.stop()
            await line.upstream.close()
            await sandbox.reap(owner)
            shutil.rmtree(scratch, ignore_errors=True)

        return HostParts(
            runner=LocalAttemptRunner(
                sandbox,
                gateway,
                self._caps(),
                owner,
                SystemClock(),
                find=find,
                judge=self._judge(),
            ),
            model=gateway.model,
            description=sandbox.description,
            shell=SandboxShell(sandbox, owner, find, reach_of(self.plan.agents.registries)),
            close=close,
        )

    async def _open_gateway(self, scratch: Path) -> tuple[Line, Gateway]:
        """The model, proved to answer, and the gateway to it."""
        line = self._target_line(scratch)
        gateway = Gateway(line, scratch / "gateway.sock")
        try:
            await checked(line)
            await gateway.start()
        except BaseException:
            await line.upstream.close()
            raise
        return line, gateway

    def sweeper(self) -> Leftovers:
        """What clears up after processes of this run that died."""
        return Leftovers(cluster=self.plan.cluster, owner=owner_of(self.path))

    def _judge(self) -> JudgeModel | None:
        """The model that judges tasks; a replay, whose record holds no judgement, has none."""
        name = self.plan.suite.judge
        if not name:
            return None
        if self.plan.replay:
            raise ConfigError("replay", "a run whose tasks no model judges", f"suite.judge={name}")
        return JudgeCaller(lambda: self._agent_line(f"judge:{name}", role="judge"))

    def _caps(self) -> Caps:
        model, most = self.plan.model, self.plan.model.max_output_tokens
        return Caps(calls=model.max_calls, tokens=model.max_tokens, output_tokens_per_call=most)

    def _target_line(self, scratch: Path) -> Line:
        """The frozen model behind its pins."""
        model = self.plan.model
        upstream = self._replayed() or self._target(scratch)
        local = model.name in LOCAL_MODELS
        ours = local or bool(model.server.kind)
        return Line(
            upstream=upstream,
            pins=Pins(
                model=upstream.model,
                temperature=model.temperature,
                extra=SAMPLING_OF_LLAMA if local else frozenset(),
            ),
            rng=np.random.default_rng(self.plan.seed),
            policy=Policy(call_timeout_s=model.call_seconds),
            secrets=all_secrets(),
            price=target_price(self.plan, self.prices),
            pace=None if ours or self.plan.replay else Pace(time.monotonic),
            purse=self.purse,
        )

    def _replayed(self) -> Upstream | None:
        recording = self.replay()
        if recording is None:
            return None
        started = recording.run.population().started
        return ReplayUpstream(started.model if started else "", recording.exchanges)

    def _target(self, scratch: Path) -> Upstream:
        model = self.plan.model
        if model.name == NO_MODEL:
            return NoUpstream()
        if model.server.kind:
            price = target_price(self.plan, self.prices)
            name = served_name(model)
            return ReplicaUpstream(self.servers, self._label(), wire_model=name, price=price)
        if model.base_url or model.name not in LOCAL_MODELS:
            return self._hosted(model.name, self._label())
        path, digest = local_weights(self.plan)
        settings = ServerSettings(
            context=model.context, parallel=model.parallel, threads=model.threads
        )
        server = embedded_server(path, settings, scratch / "model.log")
        label = self._label(digest, context=model.context)
        return ReplicaUpstream((server,), label, wire_model="local", price=FREE)

    def _hosted(self, name: str, label: str) -> Upstream:
        """A model that somebody serves: the frozen one, or one that an agent thinks with.

        An agent that thinks with the frozen model asks the same server, with the same key.
        """
        model, price = self.plan.model, self._price(name)
        if name != model.name:
            return LitellmUpstream(name, label, price=price)
        key = key_of(model)
        if not model.base_url:
            return LitellmUpstream(name, label, api_key=key, price=price)
        return HttpUpstream(model.base_url, label, wire_model=name, api_key=key, price=price)

    def _price(self, name: str) -> Price | None:
        own = name == self.plan.model.name and self.plan.model.base_url
        return target_price(self.plan, self.prices) if own else self.prices.price(name)

    def _label(self, digest: str = "", **limits: int) -> str:
        """The frozen model as attempt keys name it."""
        model = self.plan.model
        asks = {"calls": model.max_calls, "tokens": model.max_tokens}
        limits = {**limits, **asks, "output": model.max_output_tokens}
        return model_label(model.name, digest, model.temperature, limits)

    def mutator(self, name: str) -> Mutator:
        """A mutator of the pool, or the user's own (``python:MODULE:NAME``)."""
        from milo.agents.pool import make_mutator

        if name.startswith(f"{OWN_MUTATOR}:"):
            return own_mutator(name)
        return make_mutator(name, lambda: self._station(name))

    def _station(self, mutator: str) -> AgentStation:
        """Where a coding agent runs: installed on this host, so in a sandbox of it."""
        kind = self.plan.cluster.sandbox
        return AgentStation(
            sandbox=choose(kind if kind in KINDS else "auto"),
            open_line=lambda: self._agent_line(mutator),
            owner=owner_of(self.path),
            programs=programs_folder(),
            reach=reach_of(self.plan.agents.registries),
        )

    def model_caller(self, mutator: str) -> ModelCaller:
        """The model that a mutator spec ``NAME:MODEL`` names, or the run's agent model."""
        return SessionCaller(lambda: self._agent_line(mutator))

    def _agent_line(self, mutator: str, role: str = "") -> Line:
        from milo.agents.pool import is_program

        name = mutator.partition(":")[2] or self.plan.agents.model
        if not name:
            raise ConfigError("mutators.model", f"a litellm model for {mutator}", "none")
        recording = self.replay()
        upstream = (
            self._hosted(name, name)
            if recording is None
            else ReplayUpstream(name, recording.exchanges, loosely=is_program(mutator))
        )
        return Line(
            upstream=upstream,
            pins=Pins(model=name),
            rng=np.random.default_rng(self.plan.seed),
            policy=Policy(call_timeout_s=self.plan.model.call_seconds),
            secrets=all_secrets(),
            price=self._price(name),
            purse=self.purse,
            role=role or ("orchestrator" if mutator == "orchestrator" else "mutator"),
        )

    def orchestrator(self, caller: ModelCaller) -> Orchestrator:
        """The rules, or an agent that the rules referee."""
        rules = RulesOrchestrator()
        if self.plan.agents.orchestrator == "rules":
            return rules
        from milo.agents.orchestrator import AgentOrchestrator

        async def converse(
            messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]]
        ) -> tuple[Mapping[str, object], Usage]:
            _, usage, exchanges = await caller("orchestrator", messages, tools)
            return exchanges[-1].message, usage

        return AgentOrchestrator(
            converse=converse, referee=check_answer, fallback=rules, name_island=next_island
        )

    def replay(self) -> ReplaySource | None:
        """The recording that is replayed, if any."""
        return _recording(Path(self.plan.replay)) if self.plan.replay else None

    def secrets(self) -> tuple[str, ...]:
        """What may stand in no record."""
        return all_secrets()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()


def own_mutator(spec: str) -> Mutator:
    """What ``python:MODULE:NAME`` makes when it is called; raises `ConfigError` where it can't.

    `NAME` is a class or function without arguments that gives a `core.ports.Mutator`.
    """
    module, _, attribute = spec.removeprefix(f"{OWN_MUTATOR}:").partition(":")
    try:
        mutator: Mutator = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"mutator {spec!r}", "python:MODULE:NAME to make one", str(error)
        ) from error
    return mutator


@lru_cache(maxsize=4)
def _suite(plan: RunPlan) -> Suite:
    return load_suite(plan.suite)


@lru_cache(maxsize=2)
def _recording(path: Path) -> ReplaySource:
    return ReplaySource(path)
