"""How it is put together: configuration, composition, command line, doctor."""
