"""L-BFGS on a smoothed maximum, sharpened step by step; linear steps to polish."""

SCHEDULE = [
    {"move": "smooth", "share": 3.0, "start": 100.0, "end": 100000.0, "steps": 200},
    {"move": "linearise", "share": 1.0, "radius": 0.01},
]
