"""Everything: smooth and linear descents, restarts, hops, finer grids (for long searches)."""

SCHEDULE = [
    {"move": "linearise", "share": 0.5, "radius": 0.1},
    {"move": "restart", "share": 2.0, "short": 24, "long": 60},
    {"move": "hop", "share": 3.0, "size": 0.3, "radius": 0.05, "warmth": 1e-5},
    {"move": "refine", "share": 2.0, "factor": 2, "size": 0.05},
    {"move": "hop", "share": 2.0, "size": 0.1, "radius": 0.03, "warmth": 1e-6},
    {"move": "refine", "share": 2.0, "factor": 2, "size": 0.03},
    {"move": "linearise", "share": 0.5, "radius": 0.01},
]
