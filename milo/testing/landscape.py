"""A synthetic landscape: harnesses whose behaviour is a known function of their source.

A harness is a set of genes (a JSON file); a task is solved with a probability that rises with
the genes it wants. No model, no sandbox: thousands of attempts a second, with known truth.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from milo.core.attempt import Outcome, Status, Timings, Usage
from milo.core.events import Change
from milo.core.evidence import Brief, Proposal, Trace
from milo.core.harness import Harness
from milo.core.ports import AttemptJob, AttemptResult, Workshop
from milo.core.task import Splits, Suite, Task
from milo.core.tree import FileTree

GENES_FILE = "genes.json"


def landscape_harness(genes: Mapping[str, int], name: str = "genes") -> Harness:
    """A harness that is nothing but its genes (name -> strength)."""
    texts = {
        "harness.toml": f'name = "{name}"\nentry = "python3 main.py"\n',
        "main.py": "import json\n",
        GENES_FILE: json.dumps(dict(sorted(genes.items()))),
    }
    return Harness.from_tree(FileTree.of_texts(texts), name)


def genes_of(harness: Harness) -> dict[str, int]:
    """The genes of a landscape harness."""
    return dict(json.loads(harness.tree.text(GENES_FILE)))


def landscape_suite(n: int, genes: tuple[str, ...], *, k: int = 1) -> Suite:
    """3·n tasks in three equal splits; task t wants gene t mod len(genes)."""
    tasks = {
        f"t{number:03d}": Task(
            id=f"t{number:03d}", instruction=f"wants {genes[number % len(genes)]}", family="gene"
        )
        for number in range(3 * n)
    }
    ids = tuple(tasks)
    splits = Splits(search=ids[:n], validation=ids[n : 2 * n], test=ids[2 * n :])
    return Suite(name="landscape", tasks=tasks, splits=splits, k=k)


@dataclass(kw_only=True)
class LandscapeRunner:
    """Implements `AttemptRunner`: outcomes drawn from a generator seeded by the attempt's key.

    `before` is awaited first (to fail, wait or count); `base` is the chance to solve a task
    without its gene.
    """

    base: float = 0.2
    tokens: int = 100
    before: Callable[[AttemptJob], Awaitable[None]] | None = None
    ran: list[str] = field(default_factory=list)

    async def run(self, job: AttemptJob) -> AttemptResult:
        """One attempt, decided by its key alone."""
        if self.before is not None:
            await self.before(job)
        self.ran.append(str(job.key))
        wanted = job.task.instruction.removeprefix("wants ")
        strength = genes_of(job.harness).get(wanted, 0)
        seed = [ord(c) for c in str(job.key)]
        rng = np.random.default_rng(seed)
        solved = rng.random() < min(1.0, self.base + 0.4 * strength)
        outcome = Outcome(
            key=job.key,
            status=Status.COMPLETED,
            reward=float(solved),
            resolved=bool(solved),
            usage=Usage(
                uncached_input=self.tokens, output=10 * len(genes_of(job.harness)), calls=1
            ),
            timings=Timings(agent_s=1.0 + rng.random()),
        )
        return AttemptResult(outcome=outcome, trace=Trace(report="" if solved else "not solved"))

    async def smoke(self, harness: Harness) -> str:
        """Landscape harnesses always start."""
        return ""


@dataclass(frozen=True, kw_only=True)
class GeneMutator:
    """Implements `Mutator`: raises one random gene of the first parent, or joins two parents."""

    genes: tuple[str, ...]
    name: str = "genes"

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """One gene more; a graft takes each gene's maximum first."""
        rng = np.random.default_rng(brief.seed)
        joined: dict[str, int] = {}
        for parent in brief.parents:
            for gene, strength in genes_of(parent.harness).items():
                joined[gene] = max(strength, joined.get(gene, 0))
        gene = self.genes[int(rng.integers(len(self.genes)))]
        joined[gene] = joined.get(gene, 0) + 1
        tree = landscape_harness(joined).tree
        return Proposal(tree=tree, change=Change(title=f"raise {gene}"))
