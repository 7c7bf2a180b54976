"""Runs one attempt: the harness on a task in a fresh environment, then the verifier (SPEC §2).

What a harness finds: its own files read-only at /harness, the task's instruction in the file that
``MILO_TASK`` names, the model at ``OPENAI_BASE_URL`` with the key ``OPENAI_API_KEY`` under the
name ``MILO_MODEL`` (and for clients of Anthropic's under their own names), and in
``MILO_DEADLINE`` the time at which it will be ended, in seconds since the epoch; if it names
packages, their folder in ``MILO_PACKAGES``. It works in the workspace and ends by exiting. What its
setup makes must lie in the workspace (or /logs/agent): /tmp is new for every command. A task in
steps starts it once for each of them in the same environment, with the step's instruction, and
judges it in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from milo.core.disclosure import Reader, shown_to
from milo.core.errors import HarnessError, MiloError, TaskError
from milo.core.harness import Harness
from milo.core.judge import JUDGE_FILE, JudgeModel
from milo.core.ports import (
    AttemptJob,
    AttemptResult,
    Caps,
    Clock,
    Command,
    Environment,
    EnvironmentSpec,
    Exit,
    FindPackages,
    ModelGateway,
    ModelSession,
    Sandbox,
)
from milo.core.task import Network, Step, Task
from milo.core.tree import FileTree
from milo.rollout.account import Account, AgentPhase, faulty
from milo.rollout.changes import TOO_MUCH, changed_texts
from milo.rollout.equipment import Equipment, nothing_installed
from milo.rollout.integrity import hooks, signs
from milo.rollout.judged.judging import judge_by_model
from milo.rollout.judged.spec import spec_of
from milo.rollout.smoke import smoke
from milo.rollout.staging import Spoiled, prepare, start_of, until_healthy
from milo.rollout.stepwise import Walk
from milo.rollout.verifier import Judgement, judge, spoiled

GATEWAY_PORT = 8765
MIN_SETUP_S = 20.0
MAX_SETUP_S = 360.0
INSTRUCTION = "instruction.md"
OUTPUT_BYTES = 32 * 1024


class LocalAttemptRunner:
    """Implements `ports.AttemptRunner` on one sandbox and one gateway of this host.

    Any number of attempts at once on one event loop. `find` says where harnesses' packages lie;
    `judge` judges the tasks that ask for a model.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        gateway: ModelGateway,
        caps: Caps,
        owner: str,
        clock: Clock,
        *,
        find: FindPackages = nothing_installed,
        judge: JudgeModel | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._gateway = gateway
        self._caps = caps
        self._owner = owner
        self._clock = clock
        self._find = find
        self._judge = judge

    async def run(self, job: AttemptJob) -> AttemptResult:
        """One attempt from start to end; faults become statuses, only cancellation raises."""
        try:
            check_needs(job.task, self._sandbox)
            began = self._clock.now()
            environment = await self._sandbox.open(self._spec(job))
            try:
                if job.task.setting.healthcheck is not None:
                    await until_healthy(environment, job.task, job.task.setting.healthcheck)
                started_s = self._clock.now() - began
                return _started_in(started_s, await self._attempt(job, environment))
            finally:
                # What can't be removed now is left to the reaper: the attempt has been made.
                with suppress(MiloError):
                    await environment.close()
        except Exception as error:  # the boundary of an attempt: the fault is recorded
            return faulty(job, f"{type(error).__name__}: {error}")

    async def smoke(self, harness: Harness) -> str:
        """Run the manifest's setup and smoke commands; "" if they pass, else the error."""
        now = self._clock.now()
        return await smoke(self._sandbox, harness, self._owner, now, find=self._find)

    def _equipment(self, job: AttemptJob) -> Equipment:
        return Equipment.of(job.harness.manifest, self._find)

    def _spec(self, job: AttemptJob) -> EnvironmentSpec:
        seen = shown_to(Reader.HARNESS, job.task)
        spec = replace(
            start_of(job.task, self._owner),
            workspace=seen.workspace,
            mounts={"/harness": job.harness.tree, "/task": _instruction(seen.instruction)},
            gateway_socket=self._gateway.socket,
            gateway_port=GATEWAY_PORT,
        )
        return self._equipment(job).shown(spec)

    async def _attempt(self, job: AttemptJob, environment: Environment) -> AttemptResult:
        if job.task.steps:
            return await self._in_steps(job, environment)
        phase = await self._agent_phase(job, environment)
        account = await _account(job, environment, phase)
        if account.status.is_infrastructure or account.all_flags:
            return account.unjudged()
        return account.judged(await self._judged(job, environment))

    async def _judged(self, job: AttemptJob, environment: Environment) -> Judgement:
        """By the task's script, or by a model where the task says so."""
        if self._judge is None or JUDGE_FILE not in job.task.tests:
            return await judge(self._sandbox, environment, job.task, self._owner)
        try:
            left = await environment.workspace()
        except HarnessError as fault:  # more was left than may be
            return spoiled(job.task, str(fault))
        return await judge_by_model(self._judge, job.task, left, f"judge/{job.key}")

    async def _agent_phase(self, job: AttemptJob, environment: Environment) -> AgentPhase:
        timeout = job.task.limits.agent_timeout_s
        setup = await self._set_up(job, environment, timeout)
        if setup is not None and setup.code != 0:
            return AgentPhase(setup=setup)
        session = await self._gateway.open_session(str(job.key), self._caps, timeout)
        try:
            entry = await environment.run(self._entry(job, session, timeout))
        finally:
            report = await session.close()
        return AgentPhase(setup=setup, entry=entry, report=report)

    async def _in_steps(self, job: AttemptJob, environment: Environment) -> AttemptResult:
        """A task in steps: one model session, one environment, a judgement after every step."""
        steps = job.task.steps
        longest = max(step.agent_timeout_s for step in steps)
        setup = await self._set_up(job, environment, longest)
        if setup is not None and setup.code != 0:
            return (await _account(job, environment, AgentPhase(setup=setup))).unjudged()
        whole = sum(step.agent_timeout_s + step.verifier_timeout_s for step in steps)
        session = await self._gateway.open_session(str(job.key), self._caps, whole)
        walk, changed = Walk(task=job.task), dict[str, str]()
        try:
            for step in steps:
                if not await _prepared(environment, walk, step):
                    break
                await environment.mount("/task", _instruction(step.instruction))
                entry = self._entry(job, session, step.agent_timeout_s)
                ended, flags = await environment.run(entry), await _signs(environment)
                # Before the verifier comes: what it leaves in the workspace is no harness's.
                changed = dict(await _changed(environment, job.task))
                walk.acted(ended, flags + hooks(job.task.workspace, changed))
                if walk.flags:
                    break
                judgement = await judge(self._sandbox, environment, job.task, self._owner, step)
                if not walk.judged(step, judgement):
                    break
        finally:
            report = await session.close()
        account = Account(
            job=job,
            phase=walk.phase(setup, report),
            flags=walk.flags,
            changed=changed,
        )
        if account.status.is_infrastructure or account.all_flags:
            return account.unjudged()
        return account.judged(walk.judgement())

    def _entry(self, job: AttemptJob, session: ModelSession, timeout_s: float) -> Command:
        env = {
            **shown_to(Reader.HARNESS, job.task).env,
            "MILO_TASK": f"/task/{INSTRUCTION}",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{GATEWAY_PORT}/v1",
            "OPENAI_API_KEY": session.token,
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{GATEWAY_PORT}",
            "ANTHROPIC_API_KEY": session.token,
            "ANTHROPIC_AUTH_TOKEN": session.token,
            "MILO_MODEL": self._gateway.model,
            "MILO_DEADLINE": f"{self._clock.now() + timeout_s:.3f}",
        }
        command = Command(
            argv=job.harness.manifest.entry,
            timeout_s=timeout_s,
            env=env,
            gateway=True,
            output_bytes=OUTPUT_BYTES,
            user=job.task.setting.user,
        )
        return self._equipment(job).started(command)

    async def _set_up(
        self, job: AttemptJob, environment: Environment, agent_s: float
    ) -> Exit | None:
        """Run the harness's setup, if it has one, for as long as the harness itself may run,
        within the bounds for any setup."""
        manifest = job.harness.manifest
        if not manifest.setup:
            return None
        timeout = min(MAX_SETUP_S, max(agent_s, MIN_SETUP_S))
        user = job.task.setting.user
        command = Command(argv=manifest.setup, timeout_s=timeout, env=job.task.env, user=user)
        return await environment.run(self._equipment(job).started(command))


async def _prepared(environment: Environment, walk: Walk, step: Step) -> bool:
    """Whether a step can begin; where what the harness left in an earlier one stands in the way,
    this one has been judged."""
    try:
        await prepare(environment, walk.task, step)
    except Spoiled as fault:
        if not walk.entries:
            raise
        walk.judged(step, spoiled(walk.task, str(fault)))
        return False
    return True


def _started_in(seconds: float, result: AttemptResult) -> AttemptResult:
    """The result with what the start of its environment took."""
    timings = result.outcome.timings
    timings = replace(timings, setup_s=timings.setup_s + seconds)
    return replace(result, outcome=replace(result.outcome, timings=timings))


async def _account(job: AttemptJob, environment: Environment, phase: AgentPhase) -> Account:
    flags = await _signs(environment)
    changed = await _changed(environment, job.task)
    flags += hooks(job.task.workspace, changed)
    return Account(job=job, phase=phase, flags=flags, changed=changed)


async def _signs(environment: Environment) -> tuple[str, ...]:
    return signs(await environment.logs(), await environment.seal())


def _instruction(text: str) -> FileTree:
    return FileTree.of_texts({INSTRUCTION: text})


def check_judged(task: Task) -> None:
    """Raise `TaskError` for a task that a model is to judge and can't, before anything is spent."""
    if JUDGE_FILE not in task.tests:
        return
    if task.steps:
        raise TaskError(f"task {task.id}", "a script for every step", "a model that judges")
    if not task.judging.judge:
        raise TaskError(f"task {task.id}", "a model that judges it (suite.judge=MODEL)", "none")
    spec_of(task)


def check_needs(task: Task, sandbox: Sandbox) -> None:
    """Raise `TaskError` where the sandbox lacks what the task needs."""
    needs = set(task.needs)
    if unset := sorted(need for need in needs if need.startswith("variable ")):
        expected = "variables with a default, ${NAME:-default}: nothing of this machine's is given"
        raise TaskError(f"task {task.id}", expected, f"none for {', '.join(unset)}")
    for reach in (task.reach, task.verifier_reach):
        if reach.network is Network.PUBLIC:
            needs.add("public-network")
        elif reach.network is Network.ALLOWLIST:
            needs.add("allowlisted-network")
    # What stands behind a need's name says where the task asks for it.
    missing = sorted(n for n in needs if n.partition(":")[0] not in sandbox.capabilities)
    if missing:
        raise TaskError(
            f"task {task.id}", f"a sandbox with {', '.join(missing)}", sandbox.description
        )


async def _changed(environment: Environment, task: Task) -> Mapping[str, str]:
    """The text of files made or changed; a note where the workspace is too large to read."""
    try:
        after = await environment.workspace()
    except HarnessError as error:
        return {TOO_MUCH: str(error)}
    return changed_texts(task.workspace, after)
