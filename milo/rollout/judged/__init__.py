"""Verifiers that ask a model: weighted rubrics, semantic equivalence, and comparison in pairs."""
