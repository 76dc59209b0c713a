"""The runner token of an agent: from an environment variable, or from the encrypted store. It is never an argument."""

from pathlib import Path

from pitboss.bootstrap.keys import key_for, open_secrets
from pitboss.bootstrap.machine import environment
from pitboss.core.errors import UserError

TOKEN_NAME = "RUNNER_TOKEN"


def runner_token(name: str, home: Path) -> str:
    """The token under a name. Raises `UserError` if there is none."""
    secret = key_for((name,), environment, open_secrets(home))
    if secret is None:
        raise UserError(
            f"there is no runner token in {name}",
            f"set the environment variable {name}, or run: pitboss secrets set {name}",
        )
    return secret.reveal()
