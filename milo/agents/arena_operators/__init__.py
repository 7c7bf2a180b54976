"""The mutator of optimizer programs that needs no model: tunes and recombines their schedules.

It finds its way by reading the source: a list of dictionaries named SCHEDULE, and functions
``f(state, seconds, parameter=default, …)`` that its entries may name. It knows no problem.
"""
