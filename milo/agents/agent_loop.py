"""The agent loop: a model with tools inspects the evidence and edits the harness step by step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import regex

from milo.agents.brief import as_files
from milo.agents.brief_library import INDEX as LIBRARY_INDEX
from milo.agents.brief_library import in_library
from milo.agents.brief_text import cut
from milo.agents.dialogue import BadCall, Call, Dialogue, Said, Tool
from milo.agents.patches import EditRefused, check_editable, replace_once
from milo.core.attempt import Usage
from milo.core.events import Change
from milo.core.evidence import Brief, Proposal
from milo.core.harness import Harness
from milo.core.ports import Workshop
from milo.core.tree import FileTree

FOLDER = "brief"
SEARCH_S = 2.0
"""How long a search may take."""
WORD, NUMBER = {"type": "string"}, {"type": "integer"}
TOOLS = (
    Tool(
        name="bash",
        about="run a command in a sandboxed copy; files that it changes are kept",
        parameters={"command": WORD},
    ),
    Tool(
        name="read",
        about="show a file, or some of its lines",
        parameters={"path": WORD, "start": NUMBER, "lines": NUMBER},
        optional=("start", "lines"),
    ),
    Tool(
        name="edit",
        about="replace a text that stands in the file exactly once",
        parameters={"path": WORD, "search": WORD, "replace": WORD},
    ),
    Tool(name="write", about="write a whole file", parameters={"path": WORD, "text": WORD}),
    Tool(
        name="search",
        about="lines of any file that match a regular expression",
        parameters={"pattern": WORD},
    ),
    Tool(name="smoke", about="run the harness's smoke test"),
    Tool(
        name="finish",
        about="end, with an account of the edit: title, why attempts fail, what is to be expected",
        parameters={"title": WORD, "diagnosis": WORD, "hypothesis": WORD},
        optional=("diagnosis", "hypothesis"),
    ),
)
FORMS = "\n".join(tool.line() for tool in TOOLS)
NO_CALL = "the reply calls no tool"
SYSTEM = f"""You improve a harness in small steps: look at the evidence, find out why attempts fail,
form one hypothesis, make the one edit that tests it, run the smoke test, and finish. The brief
(task, evidence, lineage) lies in the folder {FOLDER}/, read-only.

You work through tools. Call those that you are offered. Only if you are offered none, or can't
call any, each of your replies is to hold one JSON object that calls one tool, of these forms:
{FORMS}"""


@dataclass(slots=True)
class Session:
    """One mutation under way. Owned by one `propose` call."""

    parent: Harness
    documents: Mapping[str, str]
    tree: FileTree
    spent: Usage = field(default_factory=Usage)
    change: Change | None = None


class AgentLoopMutator:
    """Works through a bounded number of tool calls. Stateless: may be shared.

    `model` is the litellm model that the workshop is to reach; `steps` bounds the calls.
    """

    def __init__(
        self, model: str, steps: int = 24, result_chars: int = 4000, shell_s: float = 30.0
    ) -> None:
        self.model = model
        self._steps = steps
        self._result_chars = result_chars
        self._shell_s = shell_s

    @property
    def name(self) -> str:
        """As the pool names it."""
        return f"agent_loop:{self.model}"

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """The child that was left, finished or not; raises `EditRefused` where it is none."""
        parent = brief.parents[0].harness
        session = Session(parent=parent, documents=as_files(brief), tree=parent.tree)
        dialogue = Dialogue(workshop.converse, TOOLS, opening(session))
        for left in range(self._steps - 1, -1, -1):
            said = await dialogue.ask()
            session.spent += said.usage
            await self._turn(said, dialogue, session, workshop, f"{left} steps left")
            if session.change is not None:
                break
        return await _proposal(self.name, session, brief, workshop)

    async def _turn(
        self, said: Said, dialogue: Dialogue, session: Session, workshop: Workshop, note: str
    ) -> None:
        """Carry out a reply's tool calls in order, and tell the model what came of them."""
        results = [
            (call, cut(await self._result(call, session, workshop), self._result_chars))
            for call in said.calls
        ]
        dialogue.answer(results, note)
        if not results:
            dialogue.tell(f"Refused: {NO_CALL}\n({note})")

    async def _result(self, call: Call, session: Session, workshop: Workshop) -> str:
        """What a call gives, or the reason why it is refused."""
        if session.change is not None:
            return "Refused: the work is finished"
        try:
            return await self._carry_out(call, session, workshop)
        except (EditRefused, BadCall) as refusal:
            return f"Refused: {refusal}"

    async def _carry_out(self, call: Call, session: Session, workshop: Workshop) -> str:
        if call.problem:
            raise BadCall(call.problem)
        match call.tool:
            case "bash":
                return await self._bash(call.text("command"), session, workshop)
            case "smoke":
                return await workshop.smoke(session.tree) or "The smoke test passes."
            case "finish":
                return await finish(session, call, workshop)
            case "read" | "edit" | "write" | "search" as tool:
                return {"read": read, "edit": edit, "write": write, "search": search}[tool](
                    session, call
                )
            case other:
                raise BadCall(f"there is no tool {other!r}")

    async def _bash(self, command: str, session: Session, workshop: Workshop) -> str:
        shown = session.tree.with_texts(
            {f"{FOLDER}/{name}": text for name, text in session.documents.items()}
        )
        done, after = await workshop.shell(shown, command, self._shell_s)
        # The folder is ours while a command runs; a harness's own of that name comes back.
        kept = {path: file for path, file in after.items() if not path.startswith(f"{FOLDER}/")}
        own = {p: file for p, file in session.tree.items() if p.startswith(f"{FOLDER}/")}
        tree = FileTree(kept | own)
        for path in session.parent.forbidden_edits(tree):
            raise EditRefused(f"{path}: the manifest does not allow to edit it; nothing was kept")
        session.tree = tree
        limit = f" (stopped: {done.limit})" if done.limit else ""
        return f"exit code {done.code}{limit}\n{done.stdout}{done.stderr}"


def opening(session: Session) -> list[Mapping[str, object]]:
    """The first messages: the tools, the task of the round and what there is to look at."""
    shown = [name for name in session.documents if not in_library(name) or name == LIBRARY_INDEX]
    names = [*session.tree, *(f"{FOLDER}/{name}" for name in shown)]
    task = "\n\n".join(session.documents[name] for name in ("task.md", "constraints.md"))
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"{task}\n\nFiles:\n" + "\n".join(names)},
    ]


def read(session: Session, call: Call) -> str:
    """A file of the harness or of the brief, or some of its lines."""
    path = call.text("path")
    if path.startswith(f"{FOLDER}/") and path[len(FOLDER) + 1 :] in session.documents:
        text = session.documents[path[len(FOLDER) + 1 :]]
    elif path in session.tree:
        text = session.tree.text(path)
    else:
        raise EditRefused(f"{path}: no such file")
    start, lines = call.arguments.get("start", 1), call.arguments.get("lines", 400)
    if not isinstance(start, int) or not isinstance(lines, int):
        raise BadCall('"start" and "lines" must be whole numbers')
    return "\n".join(text.splitlines()[max(0, start - 1) : max(0, start - 1) + lines])


def edit(session: Session, call: Call) -> str:
    """Replace a text that stands in a file once."""
    path = call.text("path")
    if path not in session.tree:
        raise EditRefused(f"{path}: no such file")
    old = session.tree.text(path)
    new = replace_once(old, call.text("search"), call.text("replace"), path)
    return put(session, path, new)


def write(session: Session, call: Call) -> str:
    """Write a whole file."""
    return put(session, call.text("path"), call.text("text"))


def put(session: Session, path: str, text: str) -> str:
    """Give a file its text, if the manifest allows it."""
    check_editable(path, session.parent)
    session.tree = session.tree.with_texts({path: text})
    return f"{path} written."


def search(session: Session, call: Call) -> str:
    """Matching lines with file and number; bounded in time, for some patterns take for ever."""
    pattern = call.text("pattern")
    try:
        wanted = regex.compile(pattern)
    except regex.error as error:
        raise EditRefused(f"not a regular expression: {error}") from error
    texts = {path: session.tree.text(path) for path in session.tree}
    texts |= {f"{FOLDER}/{name}": text for name, text in session.documents.items()}
    deadline = time.monotonic() + SEARCH_S
    try:
        hits = [
            f"{path}:{number}: {line}"
            for path, text in texts.items()
            for number, line in enumerate(text.splitlines(), 1)
            if wanted.search(line, timeout=max(0.0, deadline - time.monotonic()))
        ]
    except TimeoutError as error:
        raise EditRefused(f"the search took over {SEARCH_S:g} s: a simpler pattern?") from error
    return "\n".join(hits[:60]) or "no match"


async def finish(session: Session, call: Call, workshop: Workshop) -> str:
    """Close the session with an account, if there is a child and its smoke test passes."""
    if session.tree == session.parent.tree:
        raise EditRefused("the harness is unchanged")
    error = await workshop.smoke(session.tree)
    if error:
        raise EditRefused(f"the smoke test fails: {error}")
    title, diagnosis, hypothesis = (
        str(call.arguments.get(key, ""))[:500] for key in ("title", "diagnosis", "hypothesis")
    )
    session.change = Change(
        title=title or "untitled edit", diagnosis=diagnosis, hypothesis=hypothesis
    )
    return "Finished."


async def _proposal(name: str, session: Session, brief: Brief, workshop: Workshop) -> Proposal:
    if session.tree == session.parent.tree or session.tree.digest in brief.forbidden_digests:
        raise EditRefused(f"mutator {name}: no new child was left")
    change = session.change
    if change is None:
        error = await workshop.smoke(session.tree)
        if error:
            raise EditRefused(f"mutator {name}: out of steps, and the smoke test fails: {error}")
        change = Change(title="unfinished edit (out of steps)")
    return Proposal(tree=session.tree, change=change, usage=session.spent)
