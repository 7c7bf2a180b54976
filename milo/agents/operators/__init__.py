"""Edits of a harness that need no model: found by diagnosis, made by splicing source."""
