"""Generated inputs of the command line: each is accepted or refused by a clear message, and nothing is half done."""
