"""What the words mean: frozen values and pure functions, the vocabulary of `SPEC.md`."""
