"""`python -m barnabas` is the command line."""

from barnabas.cli.main import main

main()
