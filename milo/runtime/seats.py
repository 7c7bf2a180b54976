"""Who has a slot free: the hosts that are thought alive, their slots and their GPUs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from milo.runtime.parts import HostPort
from milo.runtime.schedule import Need, SlotQueue, Work


@dataclass(kw_only=True, slots=True)
class Seat:
    """A host, its free slots and its free GPUs."""

    host: HostPort
    free: int
    slots: int
    gpus: int = 0
    gpu_type: str = ""
    total_gpus: int = 0

    def fits(self, need: Need) -> bool:
        """Whether the GPUs that are free are enough."""
        return need.fits(self.gpus, self.gpu_type)


class Seats:
    """The seats of all hosts; hosts come and go while attempts run."""

    def __init__(self) -> None:
        self._seats: list[Seat] = []
        self._any = asyncio.Event()

    def add(self, seat: Seat) -> None:
        """A host joins."""
        self._seats.append(seat)
        self._any.set()

    def lose(self, host: HostPort) -> None:
        """Forget a dead host; who waits for a seat is told when another one joins."""
        self._seats = [seat for seat in self._seats if seat.host is not host]
        if not self._seats:
            self._any.clear()

    def take(self, queue: SlotQueue) -> tuple[Work, Seat] | None:
        """The next attempt, on the emptiest seat that fits it; seats with GPUs are kept longest."""
        free = [seat for seat in self._seats if seat.free > 0]
        for seat in sorted(free, key=lambda s: (s.gpus, -s.free)):
            work = queue.pop(seat.fits)
            if work is not None:
                seat.free -= 1
                seat.gpus -= work.need.gpus
                return work, seat
        return None

    @staticmethod
    def leave(work: Work, seat: Seat) -> None:
        """An attempt has left its seat, however it ended."""
        seat.free += 1
        seat.gpus += work.need.gpus

    async def idlest(self) -> HostPort:
        """The host with most slots free; waits while there is none at all."""
        await self._any.wait()
        return max(self._seats, key=lambda seat: seat.free).host

    @property
    def names(self) -> tuple[str, ...]:
        """Of the hosts that are thought alive."""
        return tuple(seat.host.name for seat in self._seats)

    @property
    def slots(self) -> int:
        """Of all hosts together."""
        return sum(seat.slots for seat in self._seats)

    @property
    def busy(self) -> int:
        """Slots that are taken."""
        return sum(seat.slots - seat.free for seat in self._seats)

    @property
    def most_gpus(self) -> int | None:
        """What the best host has in all; None while there is no host."""
        return max((seat.total_gpus for seat in self._seats), default=None)
