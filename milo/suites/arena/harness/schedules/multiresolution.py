"""Coarse grids first: many starts, the best refined and polished; hops between."""

SCHEDULE = [
    {"move": "climb", "share": 6.0, "coarse": 40, "keep": 6, "size": 0.2, "radius": 0.05},
    {"move": "restart", "share": 1.0, "short": 30, "long": 90},
    {"move": "hop", "share": 2.0, "size": 0.3, "radius": 0.01, "warmth": 1e-05},
    {"move": "refine", "share": 1.0, "factor": 2, "size": 0.03, "radius": 0.001},
    {"move": "interior", "share": 1.0, "start": 0.0001, "end": 1e-11},
]
