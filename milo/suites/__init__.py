"""What is to be solved: task loaders, splits and the suites that come with MILO."""
