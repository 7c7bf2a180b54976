"""Simulated annealing with kicks; a linear descent at the end."""

SCHEDULE = [
    {"move": "anneal", "share": 3.0, "hot": 0.001, "cold": 1e-06, "size": 0.02},
    {"move": "linearise", "share": 1.0, "radius": 0.02},
]
