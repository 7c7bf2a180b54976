"""MILO: automated harness discovery by orchestrated island evolution."""

__version__ = "0.1.0"
