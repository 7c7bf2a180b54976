"""Basin hopping over linear descents; coordinate moves where there are no linear models."""

SCHEDULE = [
    {"move": "hop", "share": 3.0, "size": 0.15, "radius": 0.05, "warmth": 0.0001},
    {"move": "coordinate", "share": 1.0, "size": 0.05},
]
