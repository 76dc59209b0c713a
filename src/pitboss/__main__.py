"""`python -m pitboss` is the same program as `pitboss`."""

from pitboss.cli.main import run

if __name__ == "__main__":
    run()
