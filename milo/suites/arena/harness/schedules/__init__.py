"""The seeds' schedules; each becomes the schedule.py of its harness."""
