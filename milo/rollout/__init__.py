"""How one attempt is run: sandboxes, the attempt runner, the verifier."""
