"""Optimizer harnesses: programs that improve a construction in their task's folder.

`main.py` runs a schedule of moves; `schedules/` are the seeds' schedules; `reviser/` is a harness
that lets a model rewrite the optimizer that a task comes with. `seeds.py` puts the trees together.
"""
