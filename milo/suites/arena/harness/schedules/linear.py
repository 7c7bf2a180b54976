"""Linearised minimax steps within a trust region."""

SCHEDULE = [
    {"move": "linearise", "share": 1.0, "radius": 0.02, "floor": 1e-07},
]
