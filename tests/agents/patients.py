"""A harness with one planted defect at a time, a model that needs the sound one, and a task.

Every patient is the sound harness with a few words replaced; the model's script is the same for
all. So whatever the brief shows of a patient comes from its defect.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from milo.app.compose import SystemClock
from milo.core.attempt import AttemptKey
from milo.core.evidence import Brief, Evidence, ParentView
from milo.core.fitness import evaluate
from milo.core.harness import Harness
from milo.core.ports import AttemptJob, AttemptResult, Caps
from milo.core.task import Limits, Task
from milo.core.tree import File, FileTree
from milo.gateway.line import Line, Policy
from milo.gateway.pins import Pins
from milo.gateway.proxy import Gateway
from milo.rollout.local import choose
from milo.rollout.runner import LocalAttemptRunner
from milo.testing.scripted_model import Answer, ScriptedUpstream

EXPECTED_WORDS = "the-expected-sum-is-6"
CONTEXT_CHARS = 9000
INSTRUCTION = "Add the numbers of data/in.txt and write the sum to out.txt."
SOUND = r"""
import json, os, re, subprocess, sys, time, urllib.error, urllib.request
from pathlib import Path

SYSTEM = (
    "You work in a folder through a shell. Reply with one short bash command in a fenced block "
    "and you are shown its output. When the task is finished, reply with DONE."
)
STEPS = 10
SHOWN = 600
COMMAND_S = 1.0
CHECK = "Before you end: list the folder and compare it with the task."
WHERE = os.getcwd()

def ask(messages):
    body = json.dumps({"model": os.environ["MILO_MODEL"], "messages": messages}).encode()
    head = {
        "Content-Type": "application/json",
        "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
    }
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, body, head)) as response:
        return json.load(response)["choices"][0]["message"]["content"]

def command_in(reply):
    found = re.search(r"```(?:bash|sh)?\n(.*?)```", reply, re.DOTALL)
    return found.group(1).strip() if found else ""

def run(command):
    try:
        done = subprocess.run(
            ["bash", "-c", command], cwd=WHERE, capture_output=True, text=True,
            timeout=COMMAND_S, check=False,
        )
    except subprocess.TimeoutExpired:
        return "stopped: it took too long"
    return (done.stdout + done.stderr)[:SHOWN] or "(no output)"

def work(task):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    checked = not CHECK
    for _ in range(STEPS):
        reply = ask(messages)
        messages.append({"role": "assistant", "content": reply})
        command = command_in(reply)
        if command:
            messages.append({"role": "user", "content": "Output:\n" + run(command)})
        elif "DONE" in reply and not checked:
            checked = True
            messages.append({"role": "user", "content": CHECK})
        else:
            if "DONE" not in reply:
                print("no command found in the reply")
            break

if "--smoke" not in sys.argv:
    work(Path(os.environ["MILO_TASK"]).read_text())
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patient:
    """A defect: what is replaced by what, and what the brief must show of it, as regexes."""

    name: str
    before: str
    after: str
    shows: tuple[str, ...]


PATIENTS = (
    Patient(
        name="prompt",
        before="Reply with one short bash command in a fenced block ",
        after="Say what you would do ",
        shows=(
            r"system:\n\| You work in a folder through a shell\. Say what you would do",
            r"reply:\n\| Gladly! First I would look",
            r"- 1 x nothing",
        ),
    ),
    Patient(
        name="parsing",
        before=r"```(?:bash|sh)?\n",
        after=r"```bash\n",
        shows=(r"reply:\n\| ```sh\n", r"no command found in the reply", r"- 1 x 1 calls"),
    ),
    Patient(
        name="tool error handling",
        before="check=False",
        after="check=True",
        shows=(r"CalledProcessError", r"agent_error, exit code 1", r"awk .* in\.txt"),
    ),
    Patient(
        name="early stop",
        before="STEPS = 10",
        after="STEPS = 2",
        shows=(r"- 1 x 2 calls", r"call 2: HTTP 200(?s:.*)reply:\n\| ```", r"out\.txt is missing"),
    ),
    Patient(
        name="no verification",
        before='CHECK = "Before you end: list the folder and compare it with the task."',
        after='CHECK = ""',
        shows=(r"reply:\n\| DONE", r"result\.txt:\n\| 6", r"out\.txt is missing"),
    ),
    Patient(
        name="context overflow",
        before="[:SHOWN]",
        after="[:]",
        shows=(r"HTTP 400: .*maximum context length", r"HTTP Error 400", r"0123456789"),
    ),
    Patient(
        name="wrong working directory",
        before="WHERE = os.getcwd()",
        after='WHERE = "/tmp"',
        shows=(
            r"data/in\.txt: No such file or directory",
            r"Folder at the start: data/in\.txt",
            r"Changed files: none",
        ),
    ),
    Patient(
        name="time-out policy",
        before="timeout=COMMAND_S, ",
        after="",
        shows=(r"agent_timeout", r"sleep 30", r"- 1 x 4 calls"),
    ),
)
SOUND_ONE = Patient(name="sound", before="", after="", shows=())
STEPS = (
    "```sh\ncat data/in.txt\n```",
    "```bash\nawk '{s+=$1} END {print s}' in.txt\n```",
    "```bash\nyes 0123456789 | head -n 1000\n```",
    "```bash\nsleep 30\n```",
    "```bash\nawk '{s+=$1} END {print s}' data/in.txt > result.txt\n```",
    "DONE",
    "```bash\nmv result.txt out.txt\n```",
    "DONE",
)
TEST = f"""#!/bin/sh
echo {EXPECTED_WORDS}
if [ "$(cat out.txt 2>/dev/null)" = 6 ]; then
    echo 1 > "$MILO_LOGS/verifier/reward.txt"
else
    echo 0 > "$MILO_LOGS/verifier/reward.txt"
    echo "out.txt is missing or holds something else" > "$MILO_LOGS/verifier/report.txt"
fi
"""


def answer(request: Mapping[str, object], nth: int) -> Answer:
    """The model's next words: by what it said last since it was given the task, and what it was
    told before. So examples before the task, or turns that were left out, don't confuse it."""
    messages: list[Mapping[str, str]] = request["messages"]  # type: ignore[assignment]
    if sum(len(message["content"]) for message in messages) > CONTEXT_CHARS:
        words = "this model's maximum context length is 2048 tokens"
        return Answer(status=400, error=words, code="context_length_exceeded")
    begun = max(i for i, message in enumerate(messages) if INSTRUCTION in message["content"])
    if not any("fenced" in m["content"] or "```" in m["content"] for m in messages[: begun + 1]):
        return Answer(text="Gladly! First I would look at the numbers, then add them up.")
    spoken = [m["content"] for m in messages[begun:] if m["role"] == "assistant"]
    place = STEPS.index(spoken[-1]) + 1 if spoken and spoken[-1] in STEPS else 0
    return Answer(text=STEPS[min(place, len(STEPS) - 1)])


def harness_of(patient: Patient) -> Harness:
    """The sound harness with the patient's defect."""
    if patient.before and SOUND.count(patient.before) != 1:
        raise AssertionError(f"{patient.name}: the defect can't be planted")
    main = SOUND.replace(patient.before, patient.after) if patient.before else SOUND
    manifest = 'name = "patient"\nentry = "python3 main.py"\nsmoke = "python3 main.py --smoke"\n'
    return Harness.from_tree(FileTree.of_texts({"harness.toml": manifest, "main.py": main}))


def task(name: str = "sum", seconds: float = 6) -> Task:
    return Task(
        id=name,
        instruction=INSTRUCTION,
        family="sums",
        workspace=FileTree.of_texts({"data/in.txt": "1\n2\n3\n"}),
        tests=FileTree({"test.sh": File(TEST.encode(), True)}),
        limits=Limits(agent_timeout_s=seconds, verifier_timeout_s=20, memory_mb=256, storage_mb=16),
    )


@asynccontextmanager
async def hospital(folder: Path) -> AsyncIterator[LocalAttemptRunner]:
    """What runs real attempts over the scripted model, in a real sandbox."""
    line = Line(
        upstream=ScriptedUpstream(answer),
        pins=Pins(model="scripted"),
        rng=np.random.default_rng(0),
        policy=Policy(tries=1),
    )
    gateway = Gateway(line, folder / "g.sock")
    await gateway.start()
    try:
        yield LocalAttemptRunner(
            choose("auto"), gateway, Caps(calls=20), f"patients-{os.getpid()}", SystemClock()
        )
    finally:
        await gateway.stop()


async def attempt(patient: Patient, folder: Path) -> AttemptResult:
    """One real attempt of a patient on the task."""
    async with hospital(folder) as runner:
        harness = harness_of(patient)
        key = AttemptKey(
            harness=harness.digest, task="sum", task_digest=task().digest, model="m", index=0
        )
        return await runner.run(AttemptJob(key=key, harness=harness, task=task()))


def brief_of(patient: Patient, folder: Path) -> Brief:
    """The brief after one attempt."""
    result = asyncio.run(attempt(patient, folder))
    item = Evidence(
        instruction=task().instruction,
        family=task().family,
        outcome=result.outcome,
        trace=result.trace,
        workspace_files=tuple(task().workspace),
    )
    view = ParentView(
        candidate="c0",
        harness=harness_of(patient),
        scores=evaluate([result.outcome]),
        evidence=(item,),
    )
    return Brief(island="i1", round=1, parents=(view,), snapshot=(), seed=0)
