"""The agent loop: a model with tools inspects the evidence and edits the harness step by step."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from milo.agents.brief import as_files
from milo.agents.brief_library import INDEX as LIBRARY_INDEX
from milo.agents.brief_library import in_library
from milo.agents.brief_text import cut
from milo.agents.patches import EditRefused, check_editable, replace_once
from milo.core.attempt import Usage
from milo.core.events import Change
from milo.core.evidence import Brief, Proposal
from milo.core.harness import Harness
from milo.core.ports import Workshop
from milo.core.tree import FileTree

FOLDER = "brief"
SYSTEM = f"""You improve a harness in small steps. Each of your replies holds one JSON object that
calls one tool; its result is shown to you. Tools:
{{"tool": "bash", "command": "..."}}        run in a sandboxed copy; files it changes are kept
{{"tool": "read", "path": "..."}}           show a file, with optional "start" and "lines"
{{"tool": "edit", "path": "...", "search": "...", "replace": "..."}}   search must occur once
{{"tool": "write", "path": "...", "text": "..."}}     write a whole file
{{"tool": "search", "pattern": "..."}}      lines of any file that match a regular expression
{{"tool": "smoke"}}                         run the harness's smoke test
{{"tool": "finish", "title": "...", "diagnosis": "...", "hypothesis": "..."}}
The brief (task, evidence, lineage) lies in the folder {FOLDER}/, read-only."""


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
        messages = opening(session)
        for left in range(self._steps - 1, -1, -1):
            answer, usage = await workshop.complete(messages)
            session.spent += usage
            result = await self._step(answer, session, workshop)
            if session.change is not None:
                break
            messages += [
                {"role": "assistant", "content": answer},
                {"role": "user", "content": f"{result}\n({left} steps left)"},
            ]
        return await _proposal(self.name, session, brief, workshop)

    async def _step(self, answer: str, session: Session, workshop: Workshop) -> str:
        """Carry out the tool call of an answer; the result, or the reason of a refusal."""
        try:
            call = tool_call(answer)
            result = await self._carry_out(call, session, workshop)
        except EditRefused as refusal:
            result = f"Refused: {refusal}"
        return cut(result, self._result_chars)

    async def _carry_out(
        self, call: Mapping[str, object], session: Session, workshop: Workshop
    ) -> str:
        match call.get("tool"):
            case "bash":
                return await self._bash(_text(call, "command"), session, workshop)
            case "smoke":
                return await workshop.smoke(session.tree) or "The smoke test passes."
            case "finish":
                return await finish(session, call, workshop)
            case "read" | "edit" | "write" | "search" as tool:
                return {"read": read, "edit": edit, "write": write, "search": search}[tool](
                    session, call
                )
            case other:
                raise EditRefused(f"there is no tool {other!r}")

    async def _bash(self, command: str, session: Session, workshop: Workshop) -> str:
        shown = session.tree.with_texts(
            {f"{FOLDER}/{name}": text for name, text in session.documents.items()}
        )
        done, after = await workshop.shell(shown, command, self._shell_s)
        tree = after.without(*(path for path in after if path.startswith(f"{FOLDER}/")))
        for path in session.parent.forbidden_edits(tree):
            raise EditRefused(f"{path}: the manifest does not allow to edit it; nothing was kept")
        session.tree = tree
        limit = f" (stopped: {done.limit})" if done.limit else ""
        return f"exit code {done.code}{limit}\n{done.stdout}{done.stderr}"


def opening(session: Session) -> list[dict[str, str]]:
    """The first messages: the tools, the task of the round and what there is to look at."""
    shown = [name for name in session.documents if not in_library(name) or name == LIBRARY_INDEX]
    names = [*session.tree, *(f"{FOLDER}/{name}" for name in shown)]
    task = "\n\n".join(session.documents[name] for name in ("task.md", "constraints.md"))
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"{task}\n\nFiles:\n" + "\n".join(names)},
    ]


def tool_call(answer: str) -> Mapping[str, object]:
    """The first JSON object with a "tool" in an answer; raises `EditRefused` for none."""
    decoder = json.JSONDecoder(strict=False)
    for match in re.finditer(r"\{", answer):
        try:
            value, _ = decoder.raw_decode(answer, match.start())
        except ValueError:
            continue
        if isinstance(value, dict) and "tool" in value:
            return value
    raise EditRefused('the reply holds no JSON object with a "tool"')


def read(session: Session, call: Mapping[str, object]) -> str:
    """A file of the harness or of the brief, or some of its lines."""
    path = _text(call, "path")
    if path.startswith(f"{FOLDER}/") and path[len(FOLDER) + 1 :] in session.documents:
        text = session.documents[path[len(FOLDER) + 1 :]]
    elif path in session.tree:
        text = session.tree.text(path)
    else:
        raise EditRefused(f"{path}: no such file")
    start, lines = call.get("start", 1), call.get("lines", 400)
    if not isinstance(start, int) or not isinstance(lines, int):
        raise EditRefused('"start" and "lines" must be whole numbers')
    return "\n".join(text.splitlines()[max(0, start - 1) : max(0, start - 1) + lines])


def edit(session: Session, call: Mapping[str, object]) -> str:
    """Replace a text that stands in a file once."""
    path = _text(call, "path")
    if path not in session.tree:
        raise EditRefused(f"{path}: no such file")
    old = session.tree.text(path)
    new = replace_once(old, _text(call, "search"), _text(call, "replace"), path)
    return put(session, path, new)


def write(session: Session, call: Mapping[str, object]) -> str:
    """Write a whole file."""
    return put(session, _text(call, "path"), _text(call, "text"))


def put(session: Session, path: str, text: str) -> str:
    """Give a file its text, if the manifest allows it."""
    check_editable(path, session.parent)
    session.tree = session.tree.with_texts({path: text})
    return f"{path} written."


def search(session: Session, call: Mapping[str, object]) -> str:
    """Matching lines with file and number."""
    pattern = _text(call, "pattern")
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise EditRefused(f"not a regular expression: {error}") from error
    texts = {path: session.tree.text(path) for path in session.tree}
    texts |= {f"{FOLDER}/{name}": text for name, text in session.documents.items()}
    hits = [
        f"{path}:{number}: {line}"
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if wanted.search(line)
    ]
    return "\n".join(hits[:60]) or "no match"


async def finish(session: Session, call: Mapping[str, object], workshop: Workshop) -> str:
    """Close the session with an account, if there is a child and its smoke test passes."""
    if session.tree == session.parent.tree:
        raise EditRefused("the harness is unchanged")
    error = await workshop.smoke(session.tree)
    if error:
        raise EditRefused(f"the smoke test fails: {error}")
    title, diagnosis, hypothesis = (
        str(call.get(key, ""))[:500] for key in ("title", "diagnosis", "hypothesis")
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


def _text(call: Mapping[str, object], key: str) -> str:
    value = call.get(key)
    if not isinstance(value, str):
        raise EditRefused(f'the tool needs "{key}" as a string')
    return value
