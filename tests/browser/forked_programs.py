"""Runs a module of pitboss like `python -m`, and forks the programs that it starts, such as workers, instead of starting interpreters.

Its arguments: the command of `forked_command` as JSON, the module, and the arguments of the module.
"""

import json
import runpy
import sys

from pitboss.jobs import children
from pitboss.jobs.executors import live, local


def main() -> None:
    _, prefix, *words = sys.argv
    for module in (children, live, local):
        setattr(module, "program", lambda *program: [*json.loads(prefix), __file__, prefix, *program])  # noqa: B010
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
