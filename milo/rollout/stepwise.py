"""What the steps of one attempt add up to, while it goes from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from milo.core.ports import Exit, SessionReport
from milo.core.task import Step, Task
from milo.rollout.account import AgentPhase
from milo.rollout.verifier import Judgement, combined, falls_short


@dataclass(kw_only=True, slots=True)
class Walk:
    """The steps done so far. One owner, which adds to it in order."""

    task: Task
    entries: list[Exit] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)
    flags: tuple[str, ...] = ()

    def acted(self, entry: Exit, flags: tuple[str, ...]) -> None:
        """Add how the harness ended in a step, and the signs of hacking that it left."""
        self.entries.append(entry)
        self.flags = flags

    def judged(self, step: Step, judgement: Judgement) -> bool:
        """Add what a step was given; whether the next one is to be done."""
        self.judgements.append(judgement)
        return judgement.reward is not None and not falls_short(judgement, step)

    def phase(self, setup: Exit | None, report: SessionReport) -> AgentPhase:
        """All steps of the harness as one phase: its time is their sum, and it ended as the first
        of them that did not end well."""
        bad = [entry for entry in self.entries if entry.code != 0 or entry.limit]
        last = (bad or self.entries)[0] if self.entries else None
        entry = None
        if last is not None:
            named = list(zip(self.task.steps, self.entries, strict=False))
            entry = Exit(
                code=last.code,
                limit=last.limit,
                seconds=sum(entry.seconds for entry in self.entries),
                stdout="\n".join(f"[{step.name}]\n{ended.stdout}" for step, ended in named),
                stderr="\n".join(f"[{step.name}]\n{ended.stderr}" for step, ended in named),
            )
        return AgentPhase(setup=setup, entry=entry, report=report)

    def judgement(self) -> Judgement:
        """What the whole task was given."""
        task = self.task
        return combined(self.judgements, task.steps, task.step_reward, task.reward_range)
