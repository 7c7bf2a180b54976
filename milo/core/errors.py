"""The one tree of errors.

    MiloError
    ├── UserError            the user's input is wrong; says thing, expected, found
    │   ├── ConfigError      a configuration key or value
    │   ├── HarnessError     a harness directory or its manifest
    │   ├── TaskError        a task or suite
    │   └── RunError         a run directory that exists, is missing, or differs
    ├── ClusterError         the plan cannot be placed, or the cluster is gone
    │   └── SandboxLost      a host's sandbox can't be reached; no harness is to blame
    ├── ModelError           the provider, its weights or its server
    │   ├── ModelRefused     the provider answered, and refused this very request
    │   ├── ModelUnavailable the provider failed, and not for the sake of the request
    │   └── ReplayMiss       a replayed run made a request that was never recorded
    ├── BudgetExceeded       a reservation that a limit refuses
    │   └── BudgetSpent      a limit of the run that can't pay another model call
    ├── RecordError          a record on disk that cannot be trusted
    │   └── StaleWriter      a replaced actor tried to write its old shard
    ├── SearchOver           a proposer that has nothing more to propose
    ├── DiskFull             no room for a record; what is on disk stays consistent
    └── MoveRefused          an impossible or repeated orchestrator move

A harness's own failures are never exceptions: they are `Status` values of an attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from milo.core.evidence import Exchange


class MiloError(Exception):
    """Base of every error MILO raises on purpose."""


class UserError(MiloError):
    """Input that the user can mend: names the thing, what was expected, what was found."""

    def __init__(self, thing: str, expected: str, found: str) -> None:
        self.thing = thing
        self.expected = expected
        self.found = found
        super().__init__(f"{thing}: expected {expected}, found {found}")

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str, str]]:
        """Survive pickling between processes."""
        return (type(self), (self.thing, self.expected, self.found))


class ConfigError(UserError):
    """A configuration key or value that cannot be used."""


class HarnessError(UserError):
    """A harness directory or manifest that cannot be used."""


class TaskError(UserError):
    """A task or suite that cannot be used."""


class RunError(UserError):
    """A run directory that exists, is missing, or does not match what was asked."""


class ClusterError(MiloError):
    """The plan cannot be placed on the cluster, or the cluster was lost."""


class SandboxLost(ClusterError):
    """A host's sandbox can't be reached now (its engine died, say); no harness is to blame."""


class ModelError(MiloError):
    """The model cannot be reached, or its weights or server failed.

    `exchanges` are the model calls that were made in vain, for the record.
    """

    exchanges: tuple[Exchange, ...] = ()


class ModelRefused(ModelError):
    """The model can be reached, but its provider refuses this very request."""


class ModelUnavailable(ModelError):
    """The provider failed us, whatever was asked of it: who asked did nothing wrong.

    `lasting` says that waiting alone won't help: the key, the model's name or the quota is refused.
    Calls that are waited out stand in no record: a replay has nothing to wait for.
    """

    def __init__(self, words: str, *, lasting: bool = False) -> None:
        self.lasting = lasting
        super().__init__(words)


class ReplayMiss(ModelError):
    """A replayed run made a model request that its recording does not hold."""


class BudgetExceeded(MiloError):
    """A reservation that a hard limit refuses; nothing was spent."""


class BudgetSpent(BudgetExceeded):
    """A limit of the run that can't pay for another model call; no such call was made."""


class RecordError(MiloError):
    """A record on disk that cannot be read or trusted."""


class StaleWriter(RecordError):
    """A writer with an old epoch was refused; a newer owner holds the shard."""


class SearchOver(MiloError):
    """A proposer ended its search: its island starts no further round."""


class DiskFull(MiloError):
    """A record could not be written for want of space; nothing written before it was harmed."""


class MoveRefused(MiloError):
    """An orchestrator move that is impossible now, or repeats an earlier one."""
