"""The edits that operators are made of, each on a whole harness tree.

An edit that is already in the harness returns the tree as it was, so nothing is applied twice.
"""

from __future__ import annotations

import re

from milo.agents.operators.operator import Edit
from milo.agents.operators.surgery import (
    CannotEdit,
    anatomy_of,
    arguments_of,
    decorate,
    drop_technique,
    option,
    record_runs,
    set_arguments,
    set_constant,
    set_option,
    techniques_in,
    wrap_calls,
)
from milo.core.tree import FileTree

BLOCK_RULE = "Reply with one fenced code block and nothing else."
FOLDER_RULE = "Use the file names of the task as they are, in the current folder."
SHELL_WORDS = re.compile(
    r"\b(an?|one)( short| small| single|) (bash|shell) (script|command|program)\b", re.IGNORECASE
)
SHELL_PLURAL = re.compile(r"\b(bash|shell) (scripts|commands)\b", re.IGNORECASE)
VARIED = "by_try(0, 0.7)"
FIGURE = re.compile(r"(\d+)")


def reading(technique: str) -> Edit:
    """Put a technique around the function that reads replies."""
    return lambda tree: _once(tree, technique, lambda t: decorate(t, "extract", technique))


def solving(technique: str, arguments: str = "") -> Edit:
    """Put a technique around the function that solves the task, runs being recorded."""
    return lambda tree: _once(
        tree, technique, lambda t: decorate(record_runs(t), "solve", technique, arguments)
    )


def sending(technique: str, arguments: str = "") -> Edit:
    """Put a technique around what is sent to the model."""
    return lambda tree: _once(tree, technique, lambda t: wrap_calls(t, technique, arguments))


def language_of(tree: FileTree) -> str:
    """What the model is asked to write."""
    return "python" if "python_programs" in techniques_in(tree) else "bash"


def show_examples(tree: FileTree) -> FileTree:
    """Worked examples in the harness's language before the task."""
    return sending("with_examples", f', language="{language_of(tree)}", count=1')(tree)


def plan_first(tree: FileTree) -> FileTree:
    """A call for a short plan before each call that is acted on."""
    anatomy = anatomy_of(tree)
    if anatomy.ask is None or anatomy.loops or len(anatomy.ask.function.args.args) != 1:
        raise CannotEdit("no single function of the conversation")
    return sending("with_plan", f", ask={anatomy.ask.function.name}")(tree)


def ask_for_python(tree: FileTree) -> FileTree:
    """Have every prompt ask for a Python program where it asked for shell commands."""
    for prompt in anatomy_of(tree).act_prompts:
        old = str(prompt.node.value)
        new = SHELL_WORDS.sub(lambda match: _pythonic(match[1], match[2]), old)
        new = SHELL_PLURAL.sub("Python programs", new).replace("```bash", "```python")
        if new == old and prompt == anatomy_of(tree).act_prompts[0] and "Python" not in old:
            new = f"{old} Write it as a Python program."
        tree = tree if new == old else set_constant(tree, prompt.name, new)
    if "with_examples" in techniques_in(tree):
        arguments = arguments_of(tree, "with_examples").replace('"bash"', '"python"')
        tree = set_arguments(tree, "with_examples", arguments)
    return tree


def add_rule(rule: str) -> Edit:
    """Append a sentence to the prompt whose reply is acted on."""

    def edit(tree: FileTree) -> FileTree:
        prompts = anatomy_of(tree).act_prompts
        if not prompts:
            raise CannotEdit("no prompt constant")
        first = [prompt for prompt in prompts if prompt.opens]
        prompt = (first or prompts)[-1]
        text = str(prompt.node.value)
        return tree if rule in text else set_constant(tree, prompt.name, f"{text} {rule}")

    return edit


def shorten_prompt(tree: FileTree) -> FileTree:
    """Keep the first two sentences of a longer prompt."""
    for prompt in anatomy_of(tree).act_prompts:
        text = str(prompt.node.value)
        sentences = re.split(r"(?<=[.!?]) ", text)
        if len(sentences) > 2:
            tree = set_constant(tree, prompt.name, " ".join(sentences[:2]))
    return tree


def setting(key: str, value: str) -> Edit:
    """Set a field of the request."""
    return lambda tree: _tidy(set_option(tree, key, value))


def first_setting(key: str, value: str) -> Edit:
    """Set a field of the request that is not set yet."""
    return lambda tree: tree if option(tree, key) else set_option(tree, key, value)


def steady(tree: FileTree) -> FileTree:
    """Temperature 0, and a higher one for tries that follow a failed one."""
    if option(tree, "temperature"):
        return tree
    tries = techniques_in(tree) & {"verified", "retry_errors"}
    return set_option(tree, "temperature", VARIED if tries else "0")


def vary(tree: FileTree) -> FileTree:
    """Later tries that differ from a first one at temperature 0."""
    greedy = option(tree, "temperature") in ("0", "0.0")
    return set_option(tree, "temperature", VARIED) if greedy else tree


def spread(tree: FileTree) -> FileTree:
    """Samples that differ: a temperature of 0 is raised."""
    greedy = option(tree, "temperature") in ("0", "0.0", VARIED)
    return _tidy(set_option(tree, "temperature", "0.7")) if greedy else tree


def without(technique: str) -> Edit:
    """Take a technique out again."""
    return lambda tree: drop_technique(tree, technique)


def scaled(technique: str, factor: float, low: int, high: int) -> Edit:
    """Scale the first number that a technique is called with, within bounds."""

    def edit(tree: FileTree) -> FileTree:
        old = arguments_of(tree, technique)
        match = FIGURE.search(old)
        if not match:
            raise CannotEdit(f"{technique} is not used with a number")
        number = min(high, max(low, round(int(match.group(1)) * factor)))
        new = old[: match.start()] + str(number) + old[match.end() :]
        return set_arguments(tree, technique, new)

    return edit


def steps(factor: float) -> Edit:
    """Scale the bound of the loop of model calls, between 1 and 8."""

    def edit(tree: FileTree) -> FileTree:
        for limit in anatomy_of(tree).step_limits:
            old = limit.node.value
            assert isinstance(old, int)
            tree = set_constant(tree, limit.name, min(8, max(1, round(old * factor))))
        return tree

    return edit


def only_loops(edit: Edit) -> Edit:
    """An edit that makes sense where the model is called in a loop."""

    def checked(tree: FileTree) -> FileTree:
        if not anatomy_of(tree).loops:
            raise CannotEdit("no loop of model calls")
        return edit(tree)

    return checked


def _tidy(tree: FileTree) -> FileTree:
    """Without the import of a setting by try that is no longer used."""
    used = option(tree, "temperature") == VARIED or "by_try" not in techniques_in(tree)
    return tree if used else drop_technique(tree, "by_try")


def _once(tree: FileTree, technique: str, edit: Edit) -> FileTree:
    return tree if technique in techniques_in(tree) else edit(tree)


def _pythonic(article: str, size: str) -> str:
    """ "a short Python program", with the count and the size that the old wording had."""
    count = "one" if article.lower() == "one" else "a"
    return f"{count}{size} Python program"
