"""Which nodes get a host, and what is said where none can."""

from __future__ import annotations

import pytest

from milo.core.errors import ConfigError, ModelError, UserError
from milo.core.plan import ClusterPlan
from milo.core.task import Setting, Task
from milo.runtime.placement import Node, faulty_node, needs_of, offers, place
from milo.runtime.schedule import Need
from milo.testing.landscape import landscape_harness


def node(name: str, **resources: float) -> Node:
    return Node(node_id=name * 8, address="10.0.0.1", resources=resources)


def test_every_node_with_a_cpu_gets_a_host_with_the_plans_slots() -> None:
    nodes = [node("a", CPU=4), node("b", CPU=1, GPU=2), node("c", memory=1e9)]
    found = place(ClusterPlan(slots=6), nodes, {})
    assert [(offer.node.name, offer.slots, offer.gpus) for offer in found] == [
        ("aaaaaaaa", 6, 0),
        ("bbbbbbbb", 6, 0),
    ]


def test_only_nodes_with_the_plans_resource_get_a_host_and_no_more_slots_than_they_offer() -> None:
    plan = ClusterPlan(slots=16, resource="container")
    nodes = [node("a", CPU=4), node("b", CPU=4, container=8), node("c", CPU=4, container=64)]
    found = place(plan, nodes, {})
    assert [(offer.node.name, offer.slots) for offer in found] == [
        ("bbbbbbbb", 8),
        ("cccccccc", 16),
    ]
    assert found[0].resources(plan) == {"container": 8}


def test_a_plan_whose_resource_nobody_offers_is_refused_with_what_there_is() -> None:
    plan = ClusterPlan(resource="container")
    with pytest.raises(ConfigError, match=r"cluster\.resource: expected a node.*'container'") as no:
        place(plan, [node("a", CPU=4, memory=5e9)], {})
    assert "node aaaaaaaa with 4 CPU" in str(no.value)
    assert "memory" not in str(no.value)


def test_a_cluster_without_any_cpu_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a node with 0\.1 CPUs.*found no node"):
        place(ClusterPlan(), [], {})


def test_a_task_that_wants_more_gpus_than_any_host_has_is_named() -> None:
    task = Task(id="train", instruction="", setting=Setting(gpus=2, gpu_types=("H100",)))
    needs = needs_of([task, Task(id="plain", instruction="")], [])
    assert needs == {"task train": Need(2, ("H100",))}
    small = [node("a", CPU=1, GPU=1, **{"accelerator_type:H100": 1}), node("b", CPU=1)]
    with pytest.raises(UserError, match="task train: expected a host with 2 GPUs of type H100"):
        place(ClusterPlan(), small, needs)
    wrong = [node("a", CPU=1, GPU=4, **{"accelerator_type:T4": 1})]
    with pytest.raises(UserError, match="found at most 4 GPUs of type T4 on one host"):
        place(ClusterPlan(), wrong, needs)
    right = [node("a", CPU=1, GPU=4, **{"accelerator_type:H100": 1})]
    assert [offer.gpus for offer in place(ClusterPlan(), right, needs)] == [4]


def test_a_harness_that_wants_a_gpu_is_named() -> None:
    plain = landscape_harness({}, "plain")
    text = plain.tree.text("harness.toml").replace('"plain"', '"greedy"') + "gpus = 1\n"
    greedy = type(plain).from_tree(plain.tree.with_texts({"harness.toml": text}))
    needs = needs_of([], [plain, greedy])
    with pytest.raises(UserError, match="harness greedy: expected a host with 1 GPU, found"):
        place(ClusterPlan(), [node("a", CPU=1)], needs)


def test_a_node_that_offers_nothing_is_left_alone_while_a_run_goes_on() -> None:
    assert offers(ClusterPlan(resource="container"), [node("a", CPU=4)], {}) == []


def test_what_a_node_lacks_is_said_with_the_node() -> None:
    lacks = ConfigError("cluster.sandbox", "bubblewrap to work here", "bwrap is not installed")
    said = faulty_node(node("b"), lacks)
    assert isinstance(said, ConfigError)
    assert str(said).startswith("node bbbbbbbb at 10.0.0.1: cluster.sandbox: expected bubblewrap")
    refused = faulty_node(node("b"), ModelError("no key"))
    assert (type(refused), str(refused)) == (ModelError, "node bbbbbbbb at 10.0.0.1: no key")
