"""What is kept: the run directory and everything in it."""
