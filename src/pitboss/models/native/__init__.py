"""Anthropic and Google through their own interfaces, by the model classes of pydantic-ai.

Importing this package costs nothing: pydantic-ai and the vendors' clients are an extra and are loaded by `load`, when a
run names such a model. Everything that speaks chat completions, these vendors' compatible addresses included, goes
through `pitboss.models.chat` instead.
"""

import warnings
from importlib import import_module
from typing import Any, Literal

from pitboss.core.errors import UserError

Kind = Literal["anthropic", "google"]

_ADAPTERS = {"anthropic": "AnthropicNative", "google": "GoogleNative"}


def load(kind: Kind) -> Any:
    """The adapter class of a vendor. Without the extra it says how to install it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the vendors' packages warn of their own code when first compiled
            module = import_module(f"pitboss.models.native.{kind}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("pitboss"):
            raise
        raise UserError(
            f"{kind}/ models need a package that is not installed ({error.name})",
            "pip install 'pitboss[native]', or use the compatible address: " + f"{kind}-chat/MODEL",
        ) from error
    return getattr(module, _ADAPTERS[kind])
