"""How search methods are compared: formulas, leaderboards and benchmark protocols (SPEC §7)."""
