"""The example clusters: by Ray's own schema and defaults, and by what KubeRay needs to be told."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import ray
import yaml

from milo.app.config import compose, conf_dir, groups

EXAMPLES = conf_dir() / "cluster" / "examples"
JSON = dict[str, Any]


def example(name: str) -> JSON:
    found: JSON = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    return found


def launcher_errors(config: JSON) -> str:
    """What Ray's own launcher says of a configuration; "" where it takes it."""
    from click import ClickException
    from jsonschema import ValidationError
    from ray.autoscaler._private.util import prepare_config, validate_config

    try:
        validate_config(prepare_config(copy.deepcopy(config)) | {"cluster_synced_files": []})
    except (ValidationError, ClickException) as error:
        return str(error).splitlines()[0]
    return ""


def test_the_launcher_example_is_taken_by_rays_schema_and_defaults() -> None:
    assert launcher_errors(example("launcher")) == ""


@pytest.mark.parametrize(
    "fault", [{"cluster_name": 5}, {"provider": {"type": "local"}}, {"no_such_key": 1}]
)
def test_rays_schema_would_have_refused_a_fault(fault: JSON) -> None:
    assert launcher_errors(example("launcher") | fault)


def test_the_launchers_workers_offer_what_the_hosts_option_asks_for() -> None:
    plan = compose(["cluster=hosts"]).cluster
    (start,) = [c for c in example("launcher")["worker_start_ray_commands"] if "ray start" in c]
    offered = json.loads(start.partition("--resources='")[2].rpartition("'")[0])
    assert offered == {plan.resource: plan.slots}
    assert all("--resources" not in c for c in example("launcher")["head_start_ray_commands"])


def test_a_kuberay_group_says_how_many_pods_it_has_and_what_they_offer() -> None:
    plan = compose(["cluster=hosts"]).cluster
    cluster = example("kuberay")
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert cluster["metadata"]["name"]
    assert cluster["spec"]["rayVersion"].split(".")[0] == ray.__version__.split(".")[0]
    names = [group["groupName"] for group in cluster["spec"]["workerGroupSpecs"]]
    assert len(set(names)) == len(names) >= 1
    for group in cluster["spec"]["workerGroupSpecs"]:
        assert 0 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        # KubeRay hands the value to a shell: quoted JSON in a YAML string.
        assert json.loads(json.loads(group["rayStartParams"]["resources"])) == {
            plan.resource: plan.slots
        }


def test_kuberay_start_parameters_are_strings_as_its_schema_wants_them() -> None:
    for spec in pod_specs(example("kuberay")):
        assert all(isinstance(value, str) for value in spec["rayStartParams"].values())


def test_every_kuberay_pod_has_ray_first_and_mounts_only_volumes_that_it_has() -> None:
    images = set()
    for spec in pod_specs(example("kuberay")):
        pod = spec["template"]["spec"]
        assert pod["containers"][0]["name"].startswith("ray-")
        images.add(pod["containers"][0]["image"])
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert container["resources"]["limits"] == container["resources"]["requests"]
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    assert len(images) == 1, "head and workers must run the same Python and MILO"


def test_a_kuberay_host_reaches_its_engine_where_the_engine_listens() -> None:
    (group,) = example("kuberay")["spec"]["workerGroupSpecs"]
    worker, engine = group["template"]["spec"]["containers"]
    address = {entry["name"]: entry["value"] for entry in worker["env"]}["DOCKER_HOST"]
    assert f"--host={address}" in engine["args"]
    shared = mounts(worker).keys() & mounts(engine).keys()
    assert any(address.startswith(f"unix://{path}/") for path in shared)
    assert "/tmp" in shared, "scratch folders are bind mounts: one path on both sides"
    assert all(mounts(worker)[path] == mounts(engine)[path] for path in shared)


def test_examples_are_no_options_of_the_cluster_group() -> None:
    assert groups()["cluster"] == ("hosts", "join", "local")


def mounts(container: Mapping[str, Any]) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def pod_specs(cluster: JSON) -> Iterator[JSON]:
    yield cluster["spec"]["headGroupSpec"]
    yield from cluster["spec"]["workerGroupSpecs"]
