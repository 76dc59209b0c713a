"""The kinds of content that a signing process can sign, one file each, found by their place.

A file has the name of its scheme and a value `SCHEME` (`scheme_definition.py`). A process signs by one scheme: the one that its policy file names.
"""
