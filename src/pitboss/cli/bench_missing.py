"""`pitboss bench` where the developers' package is not installed: how to get it."""

from pitboss.core.errors import UserError


def bench() -> int:
    """Measure speed against peers and floors. Part of the developers' package, which is not installed here.

    For example:

        make setup && .venv/bin/pitboss bench
    """
    raise UserError(
        "the benchmarks are not part of a plain install",
        "in a clone of the repository, `make setup` installs them; then `.venv/bin/pitboss bench`",
    )
