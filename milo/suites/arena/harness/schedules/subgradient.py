"""Steps against a subgradient, projected; a little coordinate search where there is none."""

SCHEDULE = [
    {"move": "subgradient", "share": 3.0, "rate": 0.02, "steps": 2000},
    {"move": "coordinate", "share": 1.0, "size": 0.05},
]
