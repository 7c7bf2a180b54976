"""From `conf/` and the user's words to a typed, checked `RunPlan`. Hydra stops here.

`conf/` holds one folder for each group (suite, model, seeds, mutators, strategy, orchestrator,
cluster, budget, tracking); its files say only what differs from the defaults that the dataclasses
document. `Face` is what the user sees; a `RunPlan` is what the run is made of.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from milo.agents.pool import is_described
from milo.app.checks import check
from milo.app.convert import build, flat, leaves, nearest, plain
from milo.app.face import Face, face_of, plan_of, provider_keys
from milo.app.overrides import LISTS, Assignment, assignments
from milo.app.seed_folder import added
from milo.core.errors import ConfigError
from milo.core.plan import RunPlan

Chooser = Callable[[Assignment, tuple[str, ...], Path], tuple[str, Mapping[str, Any]]]
"""Makes an option and the values beside it of a value that is no option of its group."""

INTERNAL_OPTIONS = frozenset({"folder", "default"})
"""Options that a free value chooses; nobody types them."""

COMPANIONS: Mapping[str, tuple[str, ...]] = {"suite=arena": ("model=default", "mutators=arena")}
"""What an option chooses in other groups, where the user chooses nothing there."""

BUDGET_EXAMPLE = "budget=quick, or budget.hours=0.2"


class Change(NamedTuple):
    """One key on which two plans differ."""

    key: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.key}: {self.before!r} -> {self.after!r}"

    @property
    def override(self) -> str:
        """The change as the journal keeps it: ``key=JSON``."""
        return f"{self.key}={json.dumps(self.after)}"


def conf_dir(app: Path = Path(__file__).parent) -> Path:
    """The folder of groups: beside `milo/` in a checkout, in `milo/app/` (`app`) in a wheel."""
    inside = app / "conf"
    beside = app.parents[1] / "conf"
    for folder in (inside, beside):
        if (folder / "config.yaml").is_file():
            return folder
    raise ConfigError("configuration files", f"a folder {inside} or {beside}", "neither")


def groups(conf: Path | None = None) -> Mapping[str, tuple[str, ...]]:
    """The groups and their options, both in alphabetical order."""
    folder = conf or conf_dir()
    return {
        group.name: tuple(sorted(file.stem for file in group.glob("*.yaml")))
        for group in sorted(folder.iterdir())
        if group.is_dir()
    }


def known_keys(conf: Path | None = None) -> frozenset[str]:
    """Every key that may be assigned: the groups, and the values below and beside them."""
    return frozenset(leaves(Face)) | frozenset(groups(conf))


def compose(
    words: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> RunPlan:
    """The checked plan of the user's words; raises `ConfigError` before anything is started.

    Paths become absolute below `cwd` (the current one). A plan may come out without a budget:
    `require_budget` refuses that.
    """
    face = _face(words, cwd or Path.cwd())
    plan = plan_of(face, _has_key(environ))
    check(plan)
    return plan


def amend(
    plan: RunPlan,
    words: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> RunPlan:
    """A recorded plan with the user's words laid over it (a resume that allows changes)."""
    merged = flat(face_of(plan))
    touched = frozenset(one.key for one in assignments(words, known_keys()))
    for key, value in flat(_face(words, cwd or Path.cwd())).items():
        if any(key == t or key.startswith(f"{t}.") for t in touched):
            merged[key] = value
    amended = plan_of(build(Face, _nested(merged)), _has_key(environ))
    check(amended)
    return amended


def require_budget(plan: RunPlan) -> None:
    """Refuse a plan that nothing would ever end."""
    if not plan.budget.is_bounded:
        raise ConfigError("budget", f"a limit, for example {BUDGET_EXAMPLE}", "none")


def differences(before: RunPlan, after: RunPlan) -> tuple[Change, ...]:
    """The keys on which two plans differ, in declaration order."""
    old, new = flat(before), flat(after)
    return tuple(Change(key, old[key], new[key]) for key in old if old[key] != new[key])


def to_data(plan: RunPlan) -> dict[str, Any]:
    """The plan as plain data, as it is saved with its run; `from_data` inverts it."""
    data: dict[str, Any] = plain(plan)
    return data


def from_data(data: object) -> RunPlan:
    """The plan that was saved; raises `ConfigError` for a key or type of another version."""
    return build(RunPlan, data)


def _has_key(environ: Mapping[str, str] | None) -> bool:
    return bool(provider_keys(os.environ if environ is None else environ))


# --- from words to the face --------------------------------------------------------------------


def _face(words: Sequence[str], cwd: Path) -> Face:
    options = groups()
    selections: list[str] = []
    values: dict[str, Any] = {}
    for one in assignments(words, known_keys()):
        if one.key in options:
            option, more = _select(one, options[one.key], cwd)
            selections.append(f"{one.key}={option}")
            values = {**more, **values}
        else:
            values[one.key] = _fitted(one)
    return _absolute(build(Face, _composed([*_companions(selections), *selections], values)), cwd)


def _companions(selections: Sequence[str]) -> list[str]:
    """What the user's choices bring with them in groups that were left alone."""
    chosen = {selection.partition("=")[0] for selection in selections}
    brought = (more for selection in selections for more in COMPANIONS.get(selection, ()))
    return [more for more in brought if more.partition("=")[0] not in chosen]


def _composed(selections: Sequence[str], values: Mapping[str, Any]) -> Any:
    """The chosen groups with the values laid over them, as plain data."""
    config = _selected(tuple(selections))
    for key, value in values.items():
        _set(config, key, value)
    return config


def _selected(selections: tuple[str, ...]) -> Any:
    """Hydra's composition of the chosen options, as plain data. A function of its words alone."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with initialize_config_dir(config_dir=str(conf_dir().resolve()), version_base="1.3"):
            config = hydra_compose("config", overrides=list(selections))
        return OmegaConf.to_container(config)
    except (HydraException, OmegaConfBaseException) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError("configuration", "groups that compose", reason) from error


def _fitted(one: Assignment) -> Any:
    """The value, with what Hydra's grammar reads otherwise put right for keys of text and lists."""
    hint = leaves(Face)[one.key]
    if hint is str and isinstance(one.value, int | float | bool):
        return one.raw
    if one.key in LISTS and isinstance(one.value, str):
        return [one.value] if one.value else []
    return one.value


def _select(one: Assignment, options: tuple[str, ...], cwd: Path) -> tuple[str, Mapping[str, Any]]:
    """The option of a group that a value stands for, and the values that go with it."""
    if isinstance(one.value, str) and one.value in options:
        return one.value, {}
    if one.key in FREE_VALUES:
        return FREE_VALUES[one.key](one, options, cwd)
    raise _not_an_option(one, options)


def _model(one: Assignment, options: tuple[str, ...], cwd: Path) -> tuple[str, Mapping[str, Any]]:
    name = one.raw if not isinstance(one.value, str) else one.value
    if name.endswith(".gguf"):
        return "local", {"model.path": name}
    if not name or ("/" not in name and nearest(name, options) and len(name) < 12):
        raise _not_an_option(one, options)
    return "default", {"model.name": name}


def _suite(one: Assignment, options: tuple[str, ...], cwd: Path) -> tuple[str, Mapping[str, Any]]:
    text = str(one.value)
    folder = (cwd / text).expanduser()
    if not text or not folder.is_dir():
        raise _not_an_option(one, options, "or a folder of tasks")
    return "folder", {"suite.path": text, "suite.name": folder.resolve().name}


def _listed(key: str) -> Chooser:
    def rewrite(
        one: Assignment, options: tuple[str, ...], cwd: Path
    ) -> tuple[str, Mapping[str, Any]]:
        items = one.value if isinstance(one.value, list) else [one.raw] if one.raw else []
        return options[0], {key: items}

    return rewrite


FREE_VALUES: Mapping[str, Chooser] = {
    "model": _model,
    "suite": _suite,
    "seeds": _listed("seeds.dirs"),
    "mutators": _listed("mutators.pool"),
}
"""Groups that also take values which are no option of theirs."""


def _not_an_option(one: Assignment, options: tuple[str, ...], more: str = "") -> ConfigError:
    typed = [option for option in options if option not in INTERNAL_OPTIONS]
    meant = nearest(str(one.value), typed)
    hint = f"; did you mean {meant!r}?" if meant else ""
    words = " ".join(filter(None, [", ".join(typed), more]))
    return ConfigError(one.key, f"one of {words}", f"{one.raw!r}{hint}")


def _absolute(face: Face, cwd: Path) -> Face:
    """The face with the paths that a later resume may read from elsewhere made absolute."""
    data = flat(face)
    for key in ("suite.path", "model.path", "model.prices"):
        if data[key]:
            data[key] = str((cwd / Path(data[key]).expanduser()).resolve())
    if data["replay"] and (cwd / data["replay"]).exists():  # else it is a run's name
        data["replay"] = str((cwd / data["replay"]).resolve())
    data["mutators.pool"] = [_absolute_entry(entry, cwd) for entry in data["mutators.pool"]]
    data["seeds.dirs"] = [_seed_folder(word, cwd) for word in data["seeds.dirs"]]
    return build(Face, _nested(data))


def _seed_folder(word: str, cwd: Path) -> str:
    """A seed's directory: the one that is there, else the one that was added under this name."""
    path = cwd / Path(word).expanduser()
    return str((path if path.exists() else added(word) or path).resolve())


def _absolute_entry(entry: str, cwd: Path) -> str:
    """A mutator that is described in a file, by the file's absolute path."""
    kind, colon, model = entry.partition(":")
    if not is_described(kind):
        return entry
    return f"{(cwd / Path(kind).expanduser()).resolve()}{colon}{model}"


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        _set(tree, key, value)
    return tree


def _set(tree: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for part in path:
        tree = tree.setdefault(part, {})
    tree[last] = value
