"""All operators. General harness engineering for any task that is done in a folder of files.

Weights are expected effects, relative to each other. The heavy ones (python, files, functions,
greedy) follow what they brought a small model alone and together on other instances of the built-in
families; the rest are judgement. The choice multiplies them by how much of a parent's failure
evidence each one addresses.
"""

from __future__ import annotations

from milo.agents.operators.edits import (
    BLOCK_RULE,
    FOLDER_RULE,
    add_rule,
    ask_for_python,
    first_setting,
    only_loops,
    plan_first,
    reading,
    scaled,
    sending,
    setting,
    shorten_prompt,
    show_examples,
    solving,
    spread,
    steady,
    steps,
    vary,
    without,
)
from milo.agents.operators.operator import Emphasis, Operator, chained, lenient
from milo.agents.operators.signs import Signs, Symptom
from milo.agents.operators.surgery import drop_side_calls, run_here
from milo.agents.operators.surgery import record_runs as record

CONTROL, PROMPT, FRUGAL = Emphasis.CONTROL, Emphasis.PROMPT, Emphasis.FRUGAL
HIGH_TOKENS = 1500.0
LONG_OUTPUT = 250.0
VOTE_FROM, VOTE_TO = 0.3, 0.85


def _costly(signs: Signs) -> bool:
    return signs.tokens > HIGH_TOKENS


def _calls_often(signs: Signs) -> bool:
    return signs.calls > 1.5


def _temperature_is_free(signs: Signs) -> bool:
    return "temperature" not in signs.pinned


def _worth_voting(signs: Signs) -> bool:
    """A majority is right only where single attempts often are; it costs three times as much."""
    return _temperature_is_free(signs) and VOTE_FROM <= signs.accuracy <= VOTE_TO


def _talkative(signs: Signs) -> bool:
    return signs.output_tokens > LONG_OUTPUT


CONTEXT = (
    Operator(
        name="see-files",
        title="Show the model the folder and how its small files begin",
        emphasis=CONTROL,
        weight=5.0,
        symptoms=(Symptom.BLIND,),
        hypothesis="Programs that fit the files' real names and format fail less often.",
        edit=sending("with_files", ", chars=600"),
    ),
    Operator(
        name="keep-recent",
        title="Keep only the start and the latest turns of a long conversation",
        emphasis=CONTROL,
        weight=1.0,
        symptoms=(Symptom.OVERFLOW, Symptom.CAPPED),
        hypothesis="Requests stay within the model's length, so that no attempt ends early.",
        edit=only_loops(sending("with_recent", ", turns=2")),
    ),
    Operator(
        name="clip-long",
        title="Show the start and the end of long messages only",
        emphasis=CONTROL,
        weight=1.5,
        symptoms=(Symptom.OVERFLOW,),
        hypothesis="Requests stay within the model's length, whatever a command prints.",
        edit=only_loops(sending("with_clipped", ", chars=1500")),
    ),
    Operator(
        name="plan-first",
        title="Ask for a three-line plan first",
        emphasis=CONTROL,
        weight=0.25,
        symptoms=(Symptom.WRONG,),
        hypothesis="Wrong results become rarer when the steps are thought out before the code.",
        edit=plan_first,
    ),
)

ACTION = (
    Operator(
        name="act-in-python",
        title="Ask for a Python program, as in the worked example most like the task",
        emphasis=CONTROL,
        weight=5.0,
        symptoms=(Symptom.SHELL_FAILED, Symptom.PYTHON_REPLY),
        hypothesis="Calculations, text and JSON go wrong less often in Python than in shell text.",
        edit=chained(reading("python_programs"), ask_for_python, show_examples),
    ),
    Operator(
        name="new-code-into-files",
        title="Put functions that a reply defines anew into the file they come from",
        emphasis=CONTROL,
        weight=12.0,
        symptoms=(Symptom.REDEFINED,),
        hypothesis="Corrected functions that were only shown now reach the file.",
        edit=reading("redefined_code"),
    ),
    Operator(
        name="plain-answers",
        title="Write a reply that is plain content to the one file that is missing",
        emphasis=CONTROL,
        weight=1.2,
        symptoms=(Symptom.PLAIN_ANSWER, Symptom.NO_BLOCK),
        hypothesis="Right answers that were given as text, not as a program, are no longer lost.",
        edit=reading("plain_answers"),
    ),
    Operator(
        name="more-steps",
        title="Allow four times as many steps",
        emphasis=CONTROL,
        weight=1.2,
        symptoms=(Symptom.STOPPED,),
        hypothesis="Work that was cut off between two steps is finished.",
        edit=only_loops(steps(4.0)),
    ),
    Operator(
        name="save-printed",
        title="Put what a clean run printed, or wrote elsewhere, into the one missing file",
        emphasis=CONTROL,
        weight=1.8,
        symptoms=(Symptom.MISSING_FILE, Symptom.PRINTED),
        hypothesis="Right answers that were printed, or misplaced, are no longer lost.",
        edit=solving("saved_output"),
    ),
)

CHECKING = (
    Operator(
        name="retry-errors",
        title="Try again from the first state, with the error, when a run fails",
        emphasis=CONTROL,
        weight=1.5,
        symptoms=(Symptom.RUN_ERROR,),
        hypothesis="Attempts that ended with an error are solved at the second try.",
        edit=chained(solving("retry_errors", "(tries=1)"), vary),
    ),
    Operator(
        name="verify-outputs",
        title="Check named files before finishing, and try again with the complaint",
        emphasis=CONTROL,
        weight=1.8,
        symptoms=(Symptom.MISSING_FILE, Symptom.BAD_JSON, Symptom.NOTHING_DONE),
        hypothesis="Attempts that left files missing or broken are solved at the second try.",
        edit=chained(solving("verified", "(tries=1)"), vary),
    ),
    Operator(
        name="verify-longer",
        title="Allow one more try after a failed check",
        emphasis=CONTROL,
        weight=0.5,
        symptoms=(Symptom.MISSING_FILE, Symptom.BAD_JSON, Symptom.NOTHING_DONE),
        hypothesis="A third try solves some of the attempts that still end with faults.",
        edit=lenient(scaled("verified", 2, 1, 3), scaled("retry_errors", 2, 1, 3)),
    ),
    Operator(
        name="vote",
        title="Attempt the task up to three times and keep the outcome most attempts share",
        emphasis=CONTROL,
        weight=0.4,
        symptoms=(Symptom.UNSTABLE, Symptom.WRONG),
        hypothesis="Tasks that are solved now and then are solved more often by majority.",
        edit=chained(solving("majority", "(samples=3)"), spread),
        condition=_worth_voting,
    ),
    Operator(
        name="survive-failures",
        title="Go on after a run that fails, with what it printed",
        emphasis=CONTROL,
        weight=1.5,
        symptoms=(Symptom.FATAL,),
        hypothesis="A command that fails no longer ends the attempt: the model sees why.",
        edit=record,
    ),
    Operator(
        name="run-here",
        title="Run the model's commands in the folder of the task",
        emphasis=CONTROL,
        weight=2.0,
        symptoms=(Symptom.ASTRAY,),
        hypothesis="Commands find the files of the task, and leave theirs beside them.",
        edit=run_here,
    ),
    Operator(
        name="bound-runs",
        title="End runs that hang after twenty seconds",
        emphasis=CONTROL,
        weight=1.5,
        symptoms=(Symptom.TIMED_OUT,),
        hypothesis="A program that waits for input no longer uses up the attempt's time.",
        edit=record,
    ),
)

PROMPTS = (
    Operator(
        name="worked-examples",
        title="Show the worked example that is most like the task before it",
        emphasis=PROMPT,
        weight=2.5,
        symptoms=(Symptom.PROSE, Symptom.NO_BLOCK, Symptom.PLACEHOLDER, Symptom.MISSING_FILE),
        hypothesis="Replies take the form of the examples: short programs that write the file.",
        edit=show_examples,
        floor=0.2,
    ),
    Operator(
        name="more-examples",
        title="Show two more worked examples",
        emphasis=PROMPT,
        weight=0.4,
        symptoms=(Symptom.WRONG, Symptom.RUN_ERROR, Symptom.NOTHING_DONE),
        hypothesis="Mistakes in form and in the use of files become rarer with more to follow.",
        edit=scaled("with_examples", 3, 1, 3),
    ),
    Operator(
        name="block-only",
        title="Ask for one code block and nothing else",
        emphasis=PROMPT,
        weight=0.8,
        symptoms=(Symptom.PROSE, Symptom.NO_BLOCK, Symptom.MANY_BLOCKS, Symptom.NO_CODE),
        hypothesis="Replies without prose are read right more often, and cost fewer tokens.",
        edit=add_rule(BLOCK_RULE),
    ),
    Operator(
        name="real-names",
        title="Ask for the task's own file names, in the current folder",
        emphasis=PROMPT,
        weight=0.8,
        symptoms=(Symptom.PLACEHOLDER, Symptom.NOTHING_DONE),
        hypothesis="Scripts that used made-up paths now find the files.",
        edit=add_rule(FOLDER_RULE),
    ),
    Operator(
        name="lenient-reading",
        title="Read unclosed fences, several blocks and shell prompts",
        emphasis=PROMPT,
        weight=1.0,
        symptoms=(
            Symptom.MANY_BLOCKS,
            Symptom.NO_BLOCK,
            Symptom.PROMPT_SIGNS,
            Symptom.CUT_OFF,
            Symptom.UNREAD,
        ),
        hypothesis="Replies that held the right commands in another form are no longer lost.",
        edit=reading("best_block"),
    ),
    Operator(
        name="greedy",
        title="Sample at temperature 0",
        emphasis=PROMPT,
        weight=4.0,
        symptoms=(Symptom.UNSTABLE, Symptom.WRONG, Symptom.RUN_ERROR),
        hypothesis="The model's most likely reply is right more often than a random one.",
        edit=steady,
        condition=_temperature_is_free,
    ),
    Operator(
        name="cooler",
        title="Sample at temperature 0.3",
        emphasis=PROMPT,
        weight=0.3,
        symptoms=(Symptom.UNSTABLE, Symptom.WRONG),
        hypothesis="Replies vary less, but second tries still differ from first ones.",
        edit=setting("temperature", "0.3"),
        condition=_temperature_is_free,
    ),
    Operator(
        name="longer-replies",
        title="Allow longer replies",
        emphasis=PROMPT,
        weight=0.6,
        symptoms=(Symptom.CUT_OFF,),
        hypothesis="Replies that were cut off are complete.",
        edit=setting("max_tokens", "1000"),
        condition=lambda signs: signs.share(Symptom.CUT_OFF) > 0.1,
    ),
)

COSTS = (
    Operator(
        name="drop-plan",
        title="Leave out the calls whose reply is not acted on",
        emphasis=FRUGAL,
        weight=4.0,
        symptoms=(),
        hypothesis="Fewer tokens and less time at the same accuracy or better.",
        edit=drop_side_calls,
        floor=0.6,
        condition=_calls_often,
    ),
    Operator(
        name="stop-when-done",
        title="Stop after the first clean run that leaves every named file in place",
        emphasis=FRUGAL,
        weight=2.0,
        symptoms=(Symptom.MANY_CALLS, Symptom.WRONG),
        hypothesis="Later steps no longer spoil work that was done, and cost nothing.",
        edit=only_loops(solving("stop_when_done")),
        floor=0.5,
    ),
    Operator(
        name="fewer-steps",
        title="Halve the number of steps",
        emphasis=FRUGAL,
        weight=0.6,
        symptoms=(Symptom.MANY_CALLS, Symptom.CAPPED),
        hypothesis="Fewer tokens at the same accuracy: later steps seldom mend anything.",
        edit=only_loops(steps(0.5)),
        condition=_calls_often,
    ),
    Operator(
        name="shorter-replies",
        title="Cap replies at 300 tokens",
        emphasis=FRUGAL,
        weight=0.5,
        symptoms=(Symptom.PROSE, Symptom.CUT_OFF),
        hypothesis="Rambling replies cost less; the code in them comes early.",
        edit=first_setting("max_tokens", "300"),
        condition=_talkative,
    ),
    Operator(
        name="smaller-context",
        title="Show half as much of the files",
        emphasis=FRUGAL,
        weight=0.4,
        symptoms=(Symptom.OVERFLOW,),
        hypothesis="Fewer tokens at the same accuracy: the first lines tell the format.",
        edit=scaled("with_files", 0.5, 150, 2000),
        floor=0.4,
        condition=_costly,
    ),
    Operator(
        name="shorter-prompt",
        title="Keep the first two sentences of the prompt",
        emphasis=FRUGAL,
        weight=0.2,
        symptoms=(),
        hypothesis="Fewer tokens at the same accuracy: the rest is seldom followed.",
        edit=shorten_prompt,
        floor=0.3,
    ),
    Operator(
        name="drop-vote",
        title="Attempt the task once instead of voting",
        emphasis=FRUGAL,
        weight=0.4,
        symptoms=(),
        hypothesis="A fraction of the tokens at nearly the same accuracy.",
        edit=without("majority"),
        floor=0.4,
        condition=_costly,
    ),
)

OPERATORS: tuple[Operator, ...] = (*CONTEXT, *ACTION, *CHECKING, *PROMPTS, *COSTS)


def operator_named(name: str) -> Operator:
    """The operator of this name; raises `KeyError`."""
    return {operator.name: operator for operator in OPERATORS}[name]
