"""Which nodes get a container host and with how many slots; what can't be placed is refused.

Pure functions over what the nodes say that they offer, so that a plan is judged before anything
is started. A host takes a little CPU of its node, its slots in the plan's own resource where the
plan names one, and the node's GPUs where a task or a harness asks for any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from milo.core.errors import ConfigError, MiloError, UserError
from milo.core.harness import Harness
from milo.core.plan import ClusterPlan
from milo.core.task import Task
from milo.runtime.schedule import Need, need_of

HOST_CPUS = 0.1
GPU_TYPE = "accelerator_type:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A living node of the cluster and what it offers in all, by Ray's names."""

    node_id: str
    address: str
    resources: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Short and unique among nodes of one cluster."""
        return self.node_id[:8]

    @property
    def gpu_type(self) -> str:
        """As Ray names it (``A100``); "" where it has none or doesn't say."""
        kinds = (name for name in self.resources if name.startswith(GPU_TYPE))
        return next(kinds, "").removeprefix(GPU_TYPE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A node that gets a host, how many attempts it runs at once, and its GPUs for them."""

    node: Node
    slots: int
    gpus: int = 0

    def resources(self, plan: ClusterPlan) -> Mapping[str, float]:
        """What the host takes of the plan's own resource."""
        return {plan.resource: self.slots} if plan.resource else {}


def needs_of(tasks: Iterable[Task], harnesses: Iterable[Harness]) -> Mapping[str, Need]:
    """Who asks for GPUs, by a name that an error can use."""
    harnesses = tuple(harnesses)
    most = max(harnesses, key=lambda harness: harness.manifest.gpus, default=None)
    needs = {f"task {task.id}": Need(task.setting.gpus, task.setting.gpu_types) for task in tasks}
    if most is not None:
        needs[f"harness {most.manifest.name}"] = need_of(most, Task(id="", instruction=""))
    return {name: need for name, need in needs.items() if need.gpus}


def offers(plan: ClusterPlan, nodes: Sequence[Node], needs: Mapping[str, Need]) -> list[Offer]:
    """The nodes that can take a host; GPUs are taken only where somebody asks for them."""
    found = []
    for node in nodes:
        slots = plan.slots
        if plan.resource:
            slots = min(slots, int(node.resources.get(plan.resource, 0)))
        if slots >= 1 and node.resources.get("CPU", 0.0) >= HOST_CPUS:
            gpus = int(node.resources.get("GPU", 0)) if needs else 0
            found.append(Offer(node=node, slots=slots, gpus=gpus))
    return found


def place(plan: ClusterPlan, nodes: Sequence[Node], needs: Mapping[str, Need]) -> list[Offer]:
    """As `offers`; raises `UserError` naming what is missing where the plan can't be placed."""
    if plan.slots < 1:
        raise ConfigError("cluster.slots", "at least 1 slot per host", str(plan.slots))
    found = offers(plan, nodes, needs)
    if not found:
        raise _no_host(plan, nodes)
    for name, need in needs.items():
        if not any(need.fits(offer.gpus, offer.node.gpu_type) for offer in found):
            raise UserError(name, f"a host with {_gpus(need.gpus, need.gpu_types)}", _best(found))
    return found


def faulty_node(node: Node, fault: MiloError) -> MiloError:
    """What a node refused a host with, naming the node: it may be any of many.

    `fault` is a user's error, or one that is made of words alone.
    """
    where = f"node {node.name} at {node.address}"
    if isinstance(fault, UserError):
        return type(fault)(f"{where}: {fault.thing}", fault.expected, fault.found)
    return type(fault)(f"{where}: {fault}")


def _no_host(plan: ClusterPlan, nodes: Sequence[Node]) -> ConfigError:
    offered = "; ".join(f"node {node.name} with {_words(node)}" for node in nodes) or "no node"
    with_cpu = [node for node in nodes if node.resources.get("CPU", 0.0) >= HOST_CPUS]
    if plan.resource and with_cpu:
        return ConfigError(
            "cluster.resource", f"a node that offers at least 1 {plan.resource!r}", offered
        )
    return ConfigError("cluster", f"a node with {HOST_CPUS} CPUs for a container host", offered)


def _words(node: Node) -> str:
    """Resources that somebody declared; not those by which Ray names the node itself."""
    skipped = ("node:", "memory", "object_store_memory")
    named = {k: v for k, v in sorted(node.resources.items()) if not k.startswith(skipped)}
    return ", ".join(f"{amount:g} {name}" for name, amount in named.items()) or "nothing"


def _gpus(count: int, kinds: Sequence[str] = ()) -> str:
    of_kind = f" of type {' or '.join(kinds)}" if kinds else ""
    return f"{count} GPU{'' if count == 1 else 's'}{of_kind}"


def _best(found: Sequence[Offer]) -> str:
    """The GPUs that there are, in words."""
    best = max(found, key=lambda offer: offer.gpus)
    kinds = sorted({o.node.gpu_type for o in found if o.gpus and o.node.gpu_type})
    return f"at most {_gpus(best.gpus, kinds)} on one host"
