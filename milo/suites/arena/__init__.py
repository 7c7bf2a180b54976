"""Open problems of the arena as tasks: improve a frozen construction (SPEC §5, last paragraph)."""
