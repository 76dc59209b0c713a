"""Finds the schemes by their place in the package `schemes`."""

from collections.abc import Mapping
from functools import cache

import pitboss.signer.schemes
from pitboss.core.discovery import definitions
from pitboss.core.errors import UserError
from pitboss.core.suggestion import suggestion
from pitboss.signer.scheme_definition import SchemeDefinition

FIRST_SCHEME = "evm_transaction"


@cache
def installed_schemes() -> Mapping[str, SchemeDefinition]:
    """Every scheme by its name."""
    package = pitboss.signer.schemes.__name__
    return {scheme.name: scheme for scheme in definitions(package, "SCHEME", SchemeDefinition, "SchemeDefinition")}


def scheme_named(name: object) -> SchemeDefinition:
    """The scheme of a name."""
    schemes = installed_schemes()
    if not isinstance(name, str) or name not in schemes:
        raise UserError("the scheme is unknown", suggestion(str(name), schemes, "schemes:"))
    return schemes[name]
