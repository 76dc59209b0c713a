"""Reads the policy file: what the signing process may sign, read once at its start. Its key `scheme` names whose policy it is."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pitboss.core.errors import UserError
from pitboss.signer.installed_schemes import scheme_named
from pitboss.signer.private_files import check_private
from pitboss.signer.scheme_definition import SchemeDefinition


def read_policy(path: Path) -> tuple[SchemeDefinition, Any]:
    """Read a policy file that only its owner can change: the scheme that it names, and the policy."""
    check_private(path, write_only=True)
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UserError(f"{path} cannot be read: {error}", "`pitboss signer init` writes an example") from None
    try:
        definition = scheme_named(content.get("scheme"))
    except UserError as error:
        raise UserError(f"{path}: scheme: {error.message}", error.hint) from None
    try:
        return definition, definition.policy_type.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}: {where}: {first['msg']}", "`docs/signer.md` describes the policy file") from None
