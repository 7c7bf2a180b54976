"""Coding agents as mutators: one declarative description each, and how they are run and judged."""
