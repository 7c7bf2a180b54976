"""Who follows a run while it goes on: the trackers of its plan, fed from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from milo.app.pricing import unpriced
from milo.core.budget import Spend
from milo.core.events import Record
from milo.core.plan import RunPlan
from milo.gateway.price_book import PriceBook
from milo.store import RunReader
from milo.store.codec import encode_plan
from milo.views.cost_note import CostNote
from milo.views.findings import findings_of
from milo.views.trackers import Follower, NullTracker, choose_tracker


class Following:
    """The trackers of one run. One owner."""

    def __init__(
        self, plan: RunPlan, path: Path, prices: PriceBook, past: Sequence[Record]
    ) -> None:
        """Open them; raises `ConfigError` where one that was asked for can't be had."""
        self.is_priced = not unpriced(plan, prices)
        self._path = path
        with RunReader(path) as reader:
            created = reader.created
        config = encode_plan(plan)
        self._tracker = choose_tracker(plan.tracking, path.name, path, config, created=created)
        follows = self.is_priced and not isinstance(self._tracker, NullTracker)
        costs = CostNote(path) if follows else None
        self._follower = Follower(self._tracker, costs, known=past[-1].seq if past else -1)

    @property
    def fault(self) -> str:
        """Why the run is not followed, "" while it is or nobody asked."""
        return self._tracker.fault

    def records(self, records: Sequence[Record]) -> None:
        """Records in journal order, on a resume from the first on."""
        self._follower.update(records)

    def spent(self, total: Spend) -> None:
        """What the ledger says now."""
        self._follower.spent(total.dollars)

    def close(self, summary: Mapping[str, object]) -> str:
        """Publish what was found and close; why that failed, "" where it did not."""
        with RunReader(self._path) as reader:
            self._tracker.publish(lambda: findings_of(reader))
            self._tracker.finish(summary)
        return self._tracker.fault
