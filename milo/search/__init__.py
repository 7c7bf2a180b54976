"""What is decided: the search, without Ray, network or files."""
