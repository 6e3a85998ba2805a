"""What runs where candidates run: the standard library only, Python 3.8 and newer.

Nothing here imports the rest of the package, and candidates never see this folder writable. The
files are run by path, in the project's own Python, not imported as `fairtrial.sandbox.harness`; only
`codec` and `library` are shared with the parent.
"""
