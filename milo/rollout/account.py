"""The account of one attempt: what happened, as its outcome and its trace (SPEC §2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from milo.core.attempt import Outcome, Status, Timings, Usage
from milo.core.evidence import Trace
from milo.core.ports import AttemptJob, AttemptResult, Exit, SessionReport
from milo.rollout.conduct import tried
from milo.rollout.integrity import IMPOSSIBLE_REWARD, tampering
from milo.rollout.verifier import Judgement

FULL_SOLVE_SLACK = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentPhase:
    """What the harness did: how its setup and its entry ended, and its model session.

    `entry` and `report` are None where the setup failed.
    """

    setup: Exit | None
    entry: Exit | None = None
    report: SessionReport | None = None

    @property
    def last(self) -> Exit | None:
        """The command that ended the phase."""
        return self.entry if self.entry is not None else self.setup

    @property
    def status(self) -> Status:
        """How the phase ended.

        A provider's fault says nothing about the harness, whatever else happened. A time-out
        comes before a cap, a cap before an exit code: the later ones follow from the earlier.
        """
        last = self.last
        if self.report is not None and self.report.fault:
            return Status.MODEL_ERROR
        if last is not None and last.limit == "time" and self.entry is not None:
            return Status.AGENT_TIMEOUT
        if self.report is not None and self.report.capped:
            return Status.BUDGET_EXCEEDED
        if last is not None and (last.code != 0 or last.limit):
            return Status.AGENT_ERROR
        return Status.COMPLETED

    @property
    def detail(self) -> str:
        """The reason for the status in words; "" where it completed."""
        said = []
        if self.report is not None and self.report.fault:
            said.append(f"model: {self.report.fault}")
        for name, ended in (("setup", self.setup), ("harness", self.entry)):
            if ended is not None and ended.limit:
                said.append(f"{name} ended by its {ended.limit} limit after {ended.seconds:.1f} s")
            elif ended is not None and ended.code != 0:
                said.append(f"{name} ended with code {ended.code}")
        if self.report is not None and self.report.capped:
            said.append(f"model cap: {self.report.capped}")
        return "; ".join(said)


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """One attempt after its agent phase: becomes a result with or without a judgement."""

    job: AttemptJob
    phase: AgentPhase
    flags: tuple[str, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """How the agent phase ended."""
        return self.phase.status

    @property
    def all_flags(self) -> tuple[str, ...]:
        """Signs of reward hacking, in the environment and in the model session."""
        report = self.phase.report
        return self.flags + (() if report is None else report.flags + tampering(report.exchanges))

    def unjudged(self) -> AttemptResult:
        """The result where no verifier ran: missing if ours was the fault, 0 if flagged."""
        detail = self.phase.detail
        if self.all_flags:
            detail = "; ".join(filter(None, (f"flagged: {', '.join(self.all_flags)}", detail)))
        reward = None if self.status.is_infrastructure else 0.0
        return self._result(self.status, reward, detail, Judgement(reward=None))

    def judged(self, judgement: Judgement) -> AttemptResult:
        """The result with the verifier's reward, 0 where it is an impossible one, or missing where
        it gave none."""
        if judgement.impossible:
            flagged = replace(self, flags=(*self.flags, IMPOSSIBLE_REWARD))
            detail = f"flagged: {IMPOSSIBLE_REWARD}: {judgement.detail}"
            return flagged._result(self.status, 0.0, detail, judgement)
        if judgement.reward is None:
            return self._result(Status.VERIFIER_ERROR, None, judgement.detail, judgement)
        detail = "; ".join(filter(None, (self.phase.detail, judgement.detail)))
        return self._result(self.status, judgement.reward, detail, judgement)

    def _result(
        self, status: Status, reward: float | None, detail: str, judgement: Judgement
    ) -> AttemptResult:
        report, solved_at = self.phase.report, self.job.task.resolved_at
        trace = self._trace(judgement)
        outcome = Outcome(
            key=self.job.key,
            status=status,
            reward=reward,
            resolved=reward is not None and reward >= solved_at - FULL_SOLVE_SLACK,
            usage=report.usage if report is not None else Usage(),
            timings=self._timings(judgement),
            flags=self.all_flags + tried(self.job.harness.tree, self.job.task, trace),
            detail=detail,
        )
        return AttemptResult(outcome=outcome, trace=trace)

    def _timings(self, judgement: Judgement) -> Timings:
        setup, entry = self.phase.setup, self.phase.entry
        return Timings(
            setup_s=setup.seconds if setup is not None else 0.0,
            agent_s=entry.seconds if entry is not None else 0.0,
            verifier_s=judgement.seconds,
        )

    def _trace(self, judgement: Judgement) -> Trace:
        last, report = self.phase.last, self.phase.report
        return Trace(
            exchanges=report.exchanges if report is not None else (),
            stdout=last.stdout if last is not None else "",
            stderr=last.stderr if last is not None else "",
            exit_code=last.code if last is not None else None,
            changed=self.changed,
            report=judgement.report,
            verifier_output=judgement.output,
        )


def faulty(job: AttemptJob, detail: str) -> AttemptResult:
    """The result where the environment failed: missing, to be tried again."""
    outcome = Outcome(key=job.key, status=Status.ENVIRONMENT_ERROR, reward=None, detail=detail)
    return AttemptResult(outcome=outcome, trace=Trace())
