"""The REST API under `/api`: one module of `routes` for each subject, errors as problem+json.

A module of `routes` has a `router`; it is found by its place and needs no registration.
"""
