"""A judgement by a model: what the spec asks about the workspace, question by question.

Work that isn't there is worth 0 without a question. A question that gets no usable answer leaves
the whole judgement without a reward, but for comparisons in pairs, whose other criteria stand.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import replace

from milo.core.errors import ModelError
from milo.core.judge import JudgeModel
from milo.core.preference import Choice, both_orders
from milo.core.task import Task
from milo.core.tree import FileTree
from milo.rollout.judged.asking import Unjudged, answered, marked, reason, truth
from milo.rollout.judged.spec import (
    Criterion,
    Equivalent,
    Node,
    Pairwise,
    Rubric,
    leaves,
    shown,
    spec_of,
)
from milo.rollout.verifier import REWARD_KEY, Judgement

AT_ONCE = 4
"""Questions about one piece of work that are asked side by side."""

WORK_CHARS = 120_000
NOTHING = Judgement(
    reward=0.0, rewards={REWARD_KEY: 0.0}, report="nothing was left that could be judged"
)


async def judge_by_model(
    model: JudgeModel, task: Task, workspace: FileTree, scope: str
) -> Judgement:
    """The reward by the task's `judge.json`; none, and why, where the model fails."""
    begun, spec = time.monotonic(), spec_of(task)
    asking = _Asking(model, scope)
    try:
        match spec:
            case Rubric():
                judgement = await _by_rubric(asking, spec, workspace)
            case Equivalent():
                judgement = await _by_meaning(asking, spec, workspace)
            case Pairwise():
                judgement = await _in_pairs(asking, spec, workspace, task.tests)
    except (Unjudged, ModelError) as error:
        judgement = Judgement(reward=None, detail=f"the judge failed: {error}")
    return replace(judgement, seconds=time.monotonic() - begun)


class _Asking:
    """The model under one scope, asked a few questions at a time."""

    def __init__(self, model: JudgeModel, scope: str) -> None:
        self.model = model
        self.scope = scope
        self.room = asyncio.Semaphore(AT_ONCE)


async def _by_rubric(asking: _Asking, spec: Rubric, workspace: FileTree) -> Judgement:
    work = shown(workspace, spec.files)
    if not work:
        return NOTHING
    assert isinstance(spec.rubric, Node), "the spec was read"
    asked = list(leaves(spec.rubric, spec.category))
    told = await asyncio.gather(*(_leaf(asking, leaf, work) for leaf in asked))
    met = {leaf.id: verdict for leaf, (verdict, _) in zip(asked, told, strict=True)}
    rows = [
        f"{'met' if verdict else 'not met'}: {leaf.requirements} ({why})"
        for leaf, (verdict, why) in zip(asked, told, strict=True)
    ]
    return _judgement(
        weighted(spec.rubric, met) or 0.0,
        f"{sum(met.values())} of {len(met)} requirements are met",
        rows,
    )


def weighted(node: Node, met: Mapping[str, bool]) -> float | None:
    """A node's score: of a leaf whether it is met, else the weighted mean of its children's.

    None where nothing of it was judged (leaves of another category). Children whose weights are all
    zero count alike. After PaperBench's rubrics.
    """
    if not node.sub_tasks:
        return float(met[node.id]) if node.id in met else None
    scored = [(child.weight, weighted(child, met)) for child in node.sub_tasks]
    kept = [(weight, score) for weight, score in scored if score is not None]
    if not kept:
        return None
    total = math.fsum(weight for weight, _ in kept)
    if total == 0:
        return math.fsum(score for _, score in kept) / len(kept)
    return math.fsum(weight * score for weight, score in kept) / total


async def _leaf(asking: _Asking, leaf: Node, work: Mapping[str, str]) -> tuple[bool, str]:
    question = (
        f"Is this requirement met by the work below?\n\nRequirement: {leaf.requirements}\n\n"
        f"{_work(work)}\n\n"
        'Answer {"reason": "one sentence", "met": true or false}. A requirement that is met in '
        "part only is not met."
    )
    async with asking.room:
        return await answered(
            asking.model, asking.scope, question, lambda a: (truth(a, "met"), reason(a))
        )


async def _by_meaning(asking: _Asking, spec: Equivalent, workspace: FileTree) -> Judgement:
    if spec.file not in workspace or not workspace.text(spec.file).strip():
        return NOTHING
    question = (
        f"A question was asked: {spec.question}\n\nThe right answer is: {spec.expected}\n\n"
        f"Does the answer below mean the same, in other words perhaps, without contradicting it or "
        f"leaving any of it out?\n\n{_work({spec.file: workspace.text(spec.file)})}\n\n"
        'Answer {"reason": "one sentence", "equivalent": true or false}.'
    )
    same, why = await answered(
        asking.model, asking.scope, question, lambda a: (truth(a, "equivalent"), reason(a))
    )
    said = "the answer is right" if same else "the answer is wrong"
    return _judgement(float(same), said, [why])


async def _in_pairs(
    asking: _Asking, spec: Pairwise, workspace: FileTree, tests: FileTree
) -> Judgement:
    work = shown(workspace, spec.files)
    if not work:
        return NOTHING
    other = {spec.reference: tests.text(spec.reference)}

    async def order(first: Mapping[str, str], second: Mapping[str, str]) -> list[Choice | None]:
        asked = (_choice(asking, spec.task, c, (first, second)) for c in spec.criteria)
        return list(await asyncio.gather(*asked))

    mine_first, mine_second = await order(work, other), await order(other, work)
    weights = [criterion.weight for criterion in spec.criteria]
    preference = both_orders(mine_first, mine_second, weights)
    if preference.score is None:
        raise Unjudged("no criterion was judged in both orders")
    rows = [
        f"{criterion.name}: {one or 'unjudged'} when first, {two or 'unjudged'} when second"
        for criterion, one, two in zip(spec.criteria, mine_first, mine_second, strict=True)
    ]
    share = f"{preference.judged} of {preference.criteria} criteria were judged"
    return _judgement(preference.score, share, rows)


async def _choice(
    asking: _Asking,
    task: str,
    criterion: Criterion,
    pair: tuple[Mapping[str, str], Mapping[str, str]],
) -> Choice | None:
    """Which of two is better on a criterion; None where the judge gives no usable answer."""
    question = (
        f"Two pieces of work were made of one task: {task}\n\nWhich is better on this criterion?\n"
        f"{criterion.name}: {criterion.requirements}\n\n"
        f"Work A\n\n{_work(pair[0])}\n\nWork B\n\n{_work(pair[1])}\n\n"
        'Answer {"reason": "one sentence", "better": "A", "B" or "tie"}.'
    )
    try:
        async with asking.room:
            return await answered(
                asking.model, asking.scope, question, lambda a: Choice(str(a.get("better")))
            )
    except Unjudged:
        return None


def _work(files: Mapping[str, str]) -> str:
    left, parts = WORK_CHARS, []
    for path, text in files.items():
        cut = text if len(text) <= left else f"{text[:left]}\n[{len(text) - left} more characters]"
        left -= min(left, len(text))
        parts.append(marked(path, cut))
    return "\n\n".join(parts)


def _judgement(reward: float, said: str, rows: list[str]) -> Judgement:
    """`said` is for the mutator, `rows` are for the run's owner alone."""
    return Judgement(
        reward=reward, rewards={REWARD_KEY: reward}, report=said, output="\n".join(rows)
    )
