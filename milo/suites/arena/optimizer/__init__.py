"""Optimizers for the arena's problems: landscapes, moves on them, and a schedule of moves.

A landscape knows one problem (values, linear models, smoothings); a move knows none. The folder
goes into a sandbox as it is, together with `problems`; it imports numpy, scipy and these two.
"""
