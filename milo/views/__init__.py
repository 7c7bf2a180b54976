"""What is shown: terminal, status, report, trackers."""
