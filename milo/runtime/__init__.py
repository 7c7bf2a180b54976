"""Where it runs: the only room that imports ray."""
