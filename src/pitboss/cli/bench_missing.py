"""`pitboss bench` where the developer package is not installed: explains how to install it."""

from pitboss.core.errors import UserError


def bench() -> int:
    """Measure speed against other projects. Part of the developer package, which is not installed here.

    For example:

        make setup && .venv/bin/pitboss bench
    """
    raise UserError(
        "the benchmarks are not part of a plain install",
        "in a clone of the repository, `make setup` installs them; then `.venv/bin/pitboss bench`",
    )
