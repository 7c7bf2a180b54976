"""Coarse grids first: many starts, the best refined and polished; hops between."""

SCHEDULE = [
    {"move": "climb", "share": 3.0, "coarse": 24, "keep": 6, "size": 0.05},
    {"move": "restart", "share": 1.0, "short": 30, "long": 90},
    {"move": "hop", "share": 2.0, "size": 0.3, "radius": 0.05, "warmth": 1e-05},
    {"move": "refine", "share": 2.0, "factor": 2, "size": 0.03},
    {"move": "linearise", "share": 1.0, "radius": 0.01},
]
