"""L-BFGS on a smoothed maximum, sharpened step by step."""

SCHEDULE = [
    {"move": "smooth", "share": 3.0, "start": 100.0, "end": 100000.0, "steps": 200},
    {"move": "anneal", "share": 1.0, "hot": 0.001, "cold": 1e-06, "size": 0.02},
]
