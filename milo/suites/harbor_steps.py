"""The steps of a Harbor task: `[[steps]]` in task.toml, one folder each below `steps/`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from milo.core.errors import TaskError
from milo.core.task import Limits, Reach, Step, StepReward
from milo.core.tree import FileTree
from milo.suites.harbor_place import (
    AGENT_KEYS,
    VERIFIER_KEYS,
    VERIFIER_TIMEOUT_S,
    Place,
    healthcheck_of,
    is_separate,
    reach_of,
    user_of,
)
from milo.suites.keys import Table, filled
from milo.suites.lazy import folder_tree, read_text

STEP_KEYS = ("name", "agent", "verifier", "min_reward", "healthcheck", "artifacts")
REWARD_KEY = "reward"
BAD_NAME = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]|^\.{0,2}$|[. ]$')
CANARY = re.compile(r"<!--.*canary.*-->|#.*canary.*", re.IGNORECASE)
TEST_SCRIPT = "test.sh"
SOLVE_SCRIPT = "solve.sh"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What a task with steps is made of, and what a sandbox must offer for them."""

    steps: tuple[Step, ...]
    reward: StepReward
    needs: frozenset[str]


def steps_of(folder: Path, config: Table, place: Place) -> Parts:
    """The steps in their order, none where the task has none; `place` is the task's own.

    Raises `TaskError` naming folder, file and key.
    """
    tables = config.tables("steps")
    strategies = [strategy.value for strategy in StepReward]
    reward = config.one_of("multi_step_reward_strategy", strategies, StepReward.MEAN.value)
    if not tables and (folder / "steps").exists():
        raise config.error("steps", "the steps that the folder steps/ holds", "none")
    seen: set[str] = set()
    steps, needs = [], set[str]()
    for table in tables:
        _check_name(table, seen)
        steps.append(_step(folder, table, place.limits))
        needs |= _needs(table, config, place)
    return Parts(steps=tuple(steps), reward=StepReward(reward), needs=frozenset(needs))


def instruction_of(folder: Path, path: Path) -> str:
    """The text of an instruction, without canary lines at its top, which are not for agents."""
    lines = read_text(path, folder).split("\n")
    while lines and CANARY.fullmatch(lines[0].strip()):
        lines.pop(0)
    text = "\n".join(lines).strip()
    if not text:
        raise TaskError(str(path), "an instruction", "an empty file")
    return text


def solution_of(folder: Path, place: str) -> FileTree:
    """A reference solution; raises `TaskError` for one without its script."""
    tree = folder_tree(folder, place)
    if (folder / place).exists() and SOLVE_SCRIPT not in tree:
        raise TaskError(f"task {folder}", f"the script {place}/{SOLVE_SCRIPT}", "none")
    return tree


def _step(folder: Path, table: Table, limits: Limits) -> Step:
    place = f"steps/{table.text('name')}"
    agent, verifier = table.table("agent"), table.table("verifier")
    tests = _layered(folder_tree(folder, "tests"), folder_tree(folder, f"{place}/tests"))
    if TEST_SCRIPT not in tests:
        raise TaskError(f"task {folder}", f"{place}/tests/{TEST_SCRIPT} or tests/test.sh", "none")
    own = (folder / place / "solution").exists()
    return Step(
        name=table.text("name"),
        instruction=instruction_of(folder, folder / place / "instruction.md"),
        files=folder_tree(folder, f"{place}/workdir"),
        tests=tests,
        solution=solution_of(folder, f"{place}/solution" if own else "solution"),
        agent_timeout_s=agent.number("timeout_sec", limits.agent_timeout_s),
        verifier_timeout_s=verifier.number("timeout_sec", VERIFIER_TIMEOUT_S),
        verifier_env=filled(verifier.texts("env"))[0],
        min_reward=_min_reward(table),
        healthcheck=healthcheck_of(table),
    )


def _layered(shared: FileTree, own: FileTree) -> FileTree:
    """A step's tests over the task's; the content of either is read only if both are there."""
    if not shared or not own:
        return own or shared
    return FileTree({**shared, **own})


def _min_reward(table: Table) -> dict[str, float]:
    """Thresholds by reward key; a bare number is one for the key ``reward``."""
    if "min_reward" not in table:
        return {}
    if not isinstance(table.raw["min_reward"], dict):
        return {REWARD_KEY: table.number("min_reward", 0.0, least=float("-inf"))}
    asked = table.table("min_reward")
    return {str(key): asked.number(str(key), 0.0, least=float("-inf")) for key in asked.raw}


def _needs(table: Table, config: Table, place: Place) -> set[str]:
    """What a step asks for beyond the task: a user, a network or a verifier of its own."""
    agent, verifier = table.table("agent"), table.table("verifier")
    setting, judging = place.setting, place.judging
    reach = Reach(network=place.limits.network, hosts=setting.hosts)
    needs = set[str]()
    for phase, user, usual in (
        (agent, setting.user, reach),
        (verifier, judging.user, judging.reach or reach),
    ):
        if reach_of(phase) not in (None, usual):
            needs.add("step-network")
        if user_of(phase) not in ("", user):
            needs.add("step-users")
    says = "environment_mode" in verifier or "environment" in verifier
    if says and is_separate(verifier) != is_separate(config.table("verifier")):
        needs.add("mixed-verifiers")
    if "environment" in verifier or table.raw.get("artifacts"):
        needs.add("step-verifier")
    needs |= {f"variable {name}" for name in filled(verifier.texts("env"))[1]}
    return needs | ({"verifier-collect"} if verifier.raw.get("collect") else set())


def _check_name(table: Table, seen: set[str]) -> None:
    table.check(STEP_KEYS)
    table.table("agent").check(AGENT_KEYS)
    table.table("verifier").check(VERIFIER_KEYS)
    name = table.text("name")
    if BAD_NAME.search(name):
        raise table.error("name", "a folder's name", repr(name))
    key = unicodedata.normalize("NFC", name).casefold()
    if key in seen:
        raise table.error("name", "a name that no other step has", repr(name))
    seen.add(key)
