"""These tests need the extra `native`; where it is not installed they are left out."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pydantic_ai") else ["test_*.py"]
