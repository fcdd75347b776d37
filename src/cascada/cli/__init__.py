"""The command line: one file per command, gathered in :mod:`cascada.cli.main`."""
