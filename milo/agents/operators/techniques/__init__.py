"""Techniques that edits of this harness brought in, one module each."""
