"""Search methods of other packages: one description each, and the program that drives it.

The programs run in environments of their own, where milo is not: they use the standard library,
`milo_peer` beside them, and the package that they drive.
"""
