"""Open problems of the arena: exact verifiers that need numpy and nothing else of milo's.

The same files are put beside the verifier and beside the optimizers in a sandbox, so what is
imported here is the standard library, numpy, and this package.
"""
