"""`python -m fairtrial`: the same as `fairtrial`, where that is not on the path."""

from fairtrial.cli.main import main

main()
