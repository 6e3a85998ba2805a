"""The harness: code that runs inside the sandbox, with the standard library only, on Python 3.8+.

Nothing here imports the rest of fairtrial, and the folder is read-only for candidates. The files
are run by path in the project's own Python and import each other as the package
`_fairtrial_harness`. The parent process imports some of them as `fairtrial.sandbox.harness`, to
share formats.
"""
