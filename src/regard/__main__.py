"""`python -m regard` is `regard`."""

from regard.cli.main import run

if __name__ == "__main__":
    run()
