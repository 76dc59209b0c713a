"""Skill documents: schema, reading, upgrading, digest. Nothing in a skill is executable."""
