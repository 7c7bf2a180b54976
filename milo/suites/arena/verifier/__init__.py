"""The verifier of the arena's tasks; it enters a sandbox together with `problems`."""
