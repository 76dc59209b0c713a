"""The content digest of a skill, 64 characters long.

Two documents share a digest exactly if they mean the same: key order, YAML or JSON, camelCase, comments, defaults
written out or left out, and the order of symbols do not count. Defaults are left out of the digest, so that it does
not change when optional fields are added; hence a default may only change together with the document version. A text
that was read from a file counts as if it were written in the document; the file's name does not count.
"""

from pitboss.core import codec
from pitboss.skill.schema import SkillDocument


def skill_digest(skill: SkillDocument) -> str:
    """SHA-256 of the canonical JSON of the normal form."""
    return codec.digest(skill.normal())
