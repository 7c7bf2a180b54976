"""The single-call mutator: one answer of a model is the edit, with one repair (ablation A)."""

from __future__ import annotations

from milo.agents.brief import prompt
from milo.agents.patches import FORMAT, EditRefused, applied, parse
from milo.core.attempt import Usage
from milo.core.evidence import Brief, Proposal
from milo.core.ports import Workshop

SYSTEM = "You are an engineer who improves programs that drive language models."
REPAIRS = 1


class SingleCallMutator:
    """Asks once for whole files or search/replace blocks. Stateless: may be shared.

    `model` is the litellm model that the workshop is to reach.
    """

    def __init__(self, model: str) -> None:
        self.model = model

    @property
    def name(self) -> str:
        """As the pool names it."""
        return f"single_call:{self.model}"

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """The child; raises `EditRefused` where the repaired answer does not apply either."""
        messages = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"{prompt(brief)}\n\n{FORMAT}"},
        ]
        spent, reason = Usage(), ""
        for _ in range(1 + REPAIRS):
            answer, usage = await workshop.complete(messages)
            spent += usage
            try:
                return await self._proposal(answer, brief, workshop, spent)
            except EditRefused as refusal:
                reason = str(refusal)
            messages += [
                {"role": "assistant", "content": answer},
                {"role": "user", "content": f"Refused: {reason}. Answer again in full."},
            ]
        raise EditRefused(f"mutator {self.name}: {reason}")

    async def _proposal(
        self, answer: str, brief: Brief, workshop: Workshop, spent: Usage
    ) -> Proposal:
        patch = parse(answer)
        tree = applied(patch, brief.parents[0].harness)
        if tree.digest in brief.forbidden_digests:
            raise EditRefused("this child was already proposed")
        error = await workshop.smoke(tree)
        if error:
            raise EditRefused(f"the smoke test fails: {error}")
        return Proposal(tree=tree, change=patch.change, usage=spent)
