"""Skill documents: schema, parsing, upgrading, digest. Nothing in a skill is executable."""
