"""A run on two nodes of which one has no MILO; prints how it is refused.

Run by test_nodes.py in a process of its own: ``python bare_node_run.py FOLDER``.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from many_nodes import STORE_BYTES, many_nodes
from paced import paced_parts, paced_suite

from milo.core.errors import MiloError
from milo.core.plan import ClusterPlan, RunPlan
from milo.runtime.ray_stage import RayStage

WITHOUT_MILO = """
import sys


class Refusing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "milo":
            raise ModuleNotFoundError("No module named 'milo'")


sys.meta_path.insert(0, Refusing)
"""


async def main(folder: Path) -> None:
    """Open a stage on such nodes."""
    (folder / "sitecustomize.py").write_text(WITHOUT_MILO)
    plan = RunPlan(cluster=ClusterPlan(slots=2, resource="container"))
    with many_nodes({"container": 2}) as cluster:
        cluster.add_node(
            num_cpus=1,
            resources={"container": 2},
            object_store_memory=STORE_BYTES,
            env_vars={"PYTHONPATH": str(folder)},
        )
        stage = RayStage(paced_parts(plan, paced_suite([0.1] * 2), folder / "run"))
        try:
            await stage.open()
        except MiloError as error:
            print(f"{type(error).__name__} {error}")
        finally:
            await stage.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
