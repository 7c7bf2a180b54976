"""Takes secrets out of values before anything is kept or shown (SPEC §6).

What is known to be a secret is replaced wherever it stands: as it is, as a part of an address, or
in base64. Whoever writes a record passes it through here first, so that no reader has to.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast
from urllib.parse import quote, quote_plus, urlsplit

from milo.core.tree import FileTree

T = TypeVar("T")
REDACTED = "[redacted]"
SHORTEST = 8
"""Shorter ones ("none", "x") stand in the environment for no key at all, and are words."""
SECRET_NAME = re.compile(
    r"(^|_)(API_?KEY|ACCESS_?KEY|SECRET_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.I
)
SECRET_PARAMETER = re.compile(r"(^|[_-])(key|token|secret|password|sig|signature|auth)$", re.I)


@dataclass(frozen=True, kw_only=True, slots=True)
class Redactor:
    """Knows the secrets of one process; made by `redactor`. Values without any come back as they
    are."""

    forms: tuple[str, ...] = ()

    def finds(self, text: str) -> bool:
        """Whether a secret stands in a text."""
        return any(form in text for form in self.forms)

    def text(self, text: str) -> str:
        """A text without secrets."""
        for form in self.forms:
            text = text.replace(form, REDACTED)
        return text

    def value(self, value: T) -> T:
        """A value without secrets in any of its strings, however deep; the same type.

        File trees stay whole: a tree is its content's hash, so one that holds a secret must be
        refused instead (`finds_in`).
        """
        return cast(T, self._cleaned(value)) if self.forms else value

    def finds_in(self, tree: FileTree) -> tuple[str, ...]:
        """The paths of files that hold a secret, in content or name."""
        if not self.forms:
            return ()
        return tuple(path for path in tree if self.finds(path) or self.finds(tree.text(path)))

    def _cleaned(self, value: object) -> object:
        if type(value) is str:  # a subclass, such as an enum, is a word of ours and stays
            return self.text(value) if self.finds(value) else value
        if isinstance(value, FileTree | type):
            return value
        if isinstance(value, Mapping):
            return self._cleaned_mapping(value)
        if isinstance(value, list | tuple):
            return self._cleaned_items(value)
        return self._cleaned_fields(value) if is_dataclass(value) else value

    def _cleaned_mapping(self, value: Mapping[Any, Any]) -> object:
        pairs = [(self._cleaned(key), self._cleaned(item)) for key, item in value.items()]
        old = value.items()
        same = all(a is c and b is d for (a, b), (c, d) in zip(pairs, old, strict=True))
        return value if same else dict(pairs)

    def _cleaned_items(self, value: list[Any] | tuple[Any, ...]) -> object:
        items = [self._cleaned(item) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        kind: Any = type(value)
        return kind(*items) if hasattr(value, "_fields") else kind(items)

    def _cleaned_fields(self, value: Any) -> object:
        old = {f.name: getattr(value, f.name) for f in fields(value)}
        new = {name: self._cleaned(part) for name, part in old.items()}
        changed = {name: part for name, part in new.items() if part is not old[name]}
        return replace(value, **changed) if changed else value


def redactor(secrets: Iterable[str]) -> Redactor:
    """A redactor of these secrets in all their forms; those that are too short are left out."""
    found: set[str] = set()
    for secret in secrets:
        if len(secret) >= SHORTEST:
            found |= _forms(secret)
    return Redactor(forms=tuple(sorted(found, key=lambda form: (-len(form), form))))


def secrets_of(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that hold secrets, by their names, and passwords in addresses.

    A path to a file of credentials is none, and neither is a word of letters alone ("postgres"):
    a model's answers may hold it, and must not change.
    """
    found: dict[str, str] = {}
    for name, given in environ.items():
        value = given.strip()
        if SECRET_NAME.search(name) and not value.startswith("/"):
            found[name] = value
        elif "://" in value:
            found |= {f"{name} ({n})": part for n, part in enumerate(secrets_in_address(value))}
    return {
        name: value
        for name, value in found.items()
        if len(value) >= SHORTEST and not value.isalpha()
    }


def secrets_in_address(address: str) -> tuple[str, ...]:
    """The password and the keys that an address carries; none where it is no address."""
    try:
        parts = urlsplit(address)
        password = parts.password or ""
    except ValueError:
        return ()
    pairs = (pair.partition("=") for pair in re.split(r"[&;]", parts.query))
    keys = [value for name, _, value in pairs if SECRET_PARAMETER.search(name)]
    return tuple(part for part in (password, *keys) if part)


def _forms(secret: str) -> set[str]:
    """The secret as it is, in an address, in JSON, and in the stretch of base64 that is its own
    wherever it begins."""
    plain = {secret, quote(secret, safe=""), quote_plus(secret)}
    plain.add(secret.replace("\\", "\\\\").replace('"', '\\"'))
    coded = set()
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + secret.encode()).decode()
        # The first characters mix in what stands before, the last what follows.
        stretch = whole[(0, 2, 3)[shift] :].rstrip("=")[
            : -1 if len(whole.rstrip("=")) % 4 else None
        ]
        coded |= {stretch} if len(stretch) >= SHORTEST else set()
    return plain | coded
