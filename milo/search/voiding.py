"""Moves that came too late: what makes one void on the island that it would touch (SPEC §3.3)."""

from __future__ import annotations

from milo.core.lineage import Lineage
from milo.core.moves import Curriculum, Graft, Move, Speciate
from milo.core.topology import IslandState, moved_members


def why_void(move: Move, state: IslandState, lineage: Lineage) -> str:
    """Why a move can't take effect any more; "" where it can."""
    match move:
        case Graft(donor_candidate=donor) if donor not in lineage or not lineage[donor].harness:
            return f"there is no harness of the donor {donor}"
        case Graft(donor_candidate=donor) if donor in state.members:
            return f"the donor {donor} is a member already"
        case Speciate(root=root) if root not in state.members or root == state.root:
            return f"{root} is no member that could leave"
        case Speciate(root=root) if not moved_members(state, root, lineage):
            return f"nothing but the best is left below {root}"
        case Curriculum(epoch=epoch) if epoch <= state.epoch:
            return f"search set {state.epoch} is as new"
        case _:
            return ""
