"""The command line: parse, call one function, print. Nothing here is imported by the rest."""
