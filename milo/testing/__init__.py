"""Fakes and contract cases for tests and for authors of extensions."""
