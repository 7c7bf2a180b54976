"""Attempts in words: one call after the other, failing and passing ones of a task side by side."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from milo.agents.brief_text import cut, middle_cut, quoted
from milo.core.evidence import Evidence, Exchange, ParentView

PATTERNS_SHOWN = 12
ERROR_LINE = re.compile(r"error|exception|not found|no such|denied|timed? ?out|refused", re.I)


def by_task(view: ParentView) -> dict[str, list[Evidence]]:
    """The evidence by task: tasks with a failing attempt first, the worst of them first."""
    found: dict[str, list[Evidence]] = {}
    for item in view.evidence:
        found.setdefault(item.outcome.key.task, []).append(item)

    def rank(task: str) -> tuple[bool, float, str]:
        items = found[task]
        mean = sum(item.outcome.reward or 0.0 for item in items) / len(items)
        return (all(item.outcome.resolved for item in items), mean, task)

    return {task: found[task] for task in sorted(found, key=rank)}


def task_text(items: Sequence[Evidence], limit: int) -> str:
    """One task: what it asks, its attempts in one table, a failing beside a passing one."""
    failing = [item for item in items if not item.outcome.resolved]
    passing = [item for item in items if item.outcome.resolved]
    first = items[0]
    shown = [*failing[:1], *passing[:1]]
    share = max(200, (limit - 800) // max(1, len(shown)))
    parts = [
        f"# {first.outcome.key.task}",
        f"Asked:\n{quoted(cut(first.instruction, max(200, limit // 5)))}",
        f"Folder at the start: {cut(', '.join(first.workspace_files), 400) or 'empty'}",
        contrast(items),
    ]
    for item in shown:
        word = "Passing" if item.outcome.resolved else "Failing"
        parts.append(f"## {word} attempt {item.outcome.key.index}\n\n{attempt_text(item, share)}")
    return "\n\n".join(parts)


def contrast(items: Sequence[Evidence]) -> str:
    """Every attempt of a task in one table."""
    rows = ["attempt | status | reward | exit | calls | HTTP | finish | tokens | seconds | changed"]
    for item in items:
        outcome, trace = item.outcome, item.trace
        rows.append(
            f"{outcome.key.index} | {outcome.status} | {_number(outcome.reward)} | "
            f"{_number(trace.exit_code)} | {len(trace.exchanges)} | {_codes(trace.exchanges)} | "
            f"{_finishes(trace.exchanges)} | {outcome.usage.tokens} | {outcome.latency_s:.1f} | "
            f"{cut(', '.join(trace.changed), 80) or 'nothing'}"
        )
    return "\n".join(rows)


def attempt_text(item: Evidence, limit: int) -> str:
    """One attempt: how it ended, what it left, what was judged, what was said call by call.

    What is short and tells most stands whole; the calls get what is left, the middle cut first.
    """
    outcome, trace = item.outcome, item.trace
    share = max(120, limit // 8)
    lines = [f"Ended: {outcome.status}, reward {_number(outcome.reward)}"]
    lines[0] += f", exit code {_number(trace.exit_code)}, {outcome.latency_s:.1f} s"
    lines[0] += f", {len(trace.exchanges)} calls, {outcome.usage.tokens} tokens"
    for name, text in (("Reason", outcome.detail), ("Flags", ", ".join(outcome.flags))):
        if text:
            lines.append(f"{name}: {cut(text, share)}")
    for name, text in (
        ("Verifier says", trace.report),
        ("Standard error", trace.stderr),
        ("Printed", trace.stdout),
    ):
        if text.strip():
            lines.append(f"{name}:\n{quoted(middle_cut(text.strip(), share))}")
    lines.append(changed_text(trace.changed, share))
    used = sum(map(len, lines))
    lines.append(f"Calls:\n{calls_text(trace.exchanges, max(share, limit - used))}")
    return "\n".join(lines)


def changed_text(changed: Mapping[str, str], limit: int) -> str:
    """The files that were made or changed, each with its beginning."""
    if not changed:
        return "Changed files: none"
    share = max(60, limit // len(changed))
    files = "\n".join(f"{name}:\n{quoted(cut(text, share))}" for name, text in changed.items())
    return f"Changed files:\n{cut(files, 2 * limit)}"


def calls_text(exchanges: Sequence[Exchange], limit: int) -> str:
    """The calls in order: what is new in each request, and the reply. Middle calls go first."""
    if not exchanges:
        return "none: the model was never asked"
    share = max(160, limit // min(len(exchanges), 6))
    texts, before = [], 0
    for number, exchange in enumerate(exchanges, 1):
        texts.append(_call_text(number, exchange, before, share))
        before = len(_messages(exchange)) + 1  # the reply is repeated in the next request
    return _fitted(texts, limit)


def _call_text(number: int, exchange: Exchange, before: int, share: int) -> str:
    messages = _messages(exchange)
    fresh = messages[before:] if 0 < before < len(messages) else messages
    usage = exchange.usage
    head = (
        f"call {number}: HTTP {exchange.status}, {exchange.seconds:.1f} s, "
        f"{usage.uncached_input + usage.cached_input} tokens in, {usage.output} out, "
        f"finish {_finish(exchange)}"
    )
    each = max(80, share // (len(fresh) + 1))
    said = [f"{m.get('role', '?')}:\n{quoted(middle_cut(_content(m), each))}" for m in fresh]
    return "\n".join([head, *said, f"reply:\n{quoted(middle_cut(_reply(exchange), share))}"])


def _fitted(texts: Sequence[str], limit: int) -> str:
    """The first and the last calls that fit, with what is left out named."""
    head: list[str] = []
    tail: list[str] = []
    left, low, high = limit, 0, len(texts)
    while low < high:
        from_end = len(tail) < len(head)
        text = texts[high - 1] if from_end else texts[low]
        if left < len(text) and (head or tail):
            break
        left -= len(text)
        if from_end:
            tail.insert(0, text)
            high -= 1
        else:
            head.append(text)
            low += 1
    gap = [f"[... calls {low + 1} to {high} left out ...]"] if low < high else []
    return "\n".join([*head, *gap, *tail])


def patterns(view: ParentView, limit: int) -> str:
    """What failing attempts have in common, counted: endings, errors, the verifier's words."""
    failing = [item for item in view.evidence if not item.outcome.resolved]
    passing = len(view.evidence) - len(failing)
    lines = [f"{len(failing)} failing and {passing} passing attempts are shown."]
    for name, counted in (
        ("Endings", Counter(_ending(item) for item in failing)),
        ("Answers of the model's server other than success", _refusals(failing)),
        ("Finish reasons of last replies", Counter(_last_finish(item) for item in failing)),
        ("Errors printed", _error_lines(failing)),
        ("The verifier's words", Counter(_first_line(item.trace.report) for item in failing)),
        ("Calls per attempt", Counter(f"{len(i.trace.exchanges)} calls" for i in failing)),
        ("Files changed", Counter(_changed(item) for item in failing)),
    ):
        rows = [f"- {n} x {text}" for text, n in counted.most_common(PATTERNS_SHOWN) if text]
        if rows:
            lines.append(f"\n{name}:\n" + "\n".join(rows))
    return cut("\n".join(lines), limit)


def _ending(item: Evidence) -> str:
    code = item.trace.exit_code
    reason = f": {_normal(item.outcome.detail)}" if item.outcome.detail else ""
    return f"{item.outcome.status}, exit code {_number(code)}{reason}"


def _refusals(items: Iterable[Evidence]) -> Counter[str]:
    return Counter(
        f"HTTP {exchange.status}: {_normal(_reply(exchange))}"
        for item in items
        for exchange in item.trace.exchanges
        if exchange.status != 200
    )


def _error_lines(items: Iterable[Evidence]) -> Counter[str]:
    found: Counter[str] = Counter()
    for item in items:
        trace = item.trace
        shown = (_content(m) for e in trace.exchanges[-1:] for m in _messages(e)[2:])
        lines = "\n".join([trace.stderr, trace.stdout, *shown]).splitlines()
        found.update({_normal(line) for line in lines if ERROR_LINE.search(line)})
    return found


def _changed(item: Evidence) -> str:
    return "nothing" if not item.trace.changed else f"{len(item.trace.changed)} files"


def _normal(line: str) -> str:
    """A line with its numbers blurred, so that equal faults count together."""
    return cut(re.sub(r"\d+", "N", " ".join(line.split())), 200)


def _first_line(text: str) -> str:
    return cut(next((line.strip() for line in text.splitlines() if line.strip()), ""), 160)


def _last_finish(item: Evidence) -> str:
    return _finish(item.trace.exchanges[-1]) if item.trace.exchanges else "never asked"


def _finish(exchange: Exchange) -> str:
    return str(_choice(exchange).get("finish_reason") or "none")


def _finishes(exchanges: Sequence[Exchange]) -> str:
    return cut(", ".join(dict.fromkeys(map(_finish, exchanges))), 40) or "none"


def _codes(exchanges: Sequence[Exchange]) -> str:
    return ", ".join(dict.fromkeys(str(exchange.status) for exchange in exchanges)) or "none"


def _choice(exchange: Exchange) -> Mapping[str, object]:
    choices = exchange.response.get("choices")
    first = choices[0] if isinstance(choices, Sequence) and choices else {}
    return first if isinstance(first, Mapping) else {}


def _messages(exchange: Exchange) -> list[Mapping[str, object]]:
    messages = exchange.request.get("messages")
    listed = messages if isinstance(messages, Sequence) and not isinstance(messages, str) else ()
    return [message for message in listed if isinstance(message, Mapping)]


def _reply(exchange: Exchange) -> str:
    message = _choice(exchange).get("message")
    if isinstance(message, Mapping):
        return _content(message)
    error = exchange.response.get("error")
    said = error.get("message") if isinstance(error, Mapping) else error
    return str(said or json.dumps(exchange.response, ensure_ascii=False))


def _content(message: Mapping[str, object]) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    calls = message.get("tool_calls")
    return f"{text if content else ''}{json.dumps(calls, ensure_ascii=False) if calls else ''}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
