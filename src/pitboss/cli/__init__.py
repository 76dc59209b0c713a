"""The command line: one file for each group of commands.

Commands parse arguments and print results; the work itself is in the layers below. Slow imports are inside the
commands, so that help is instant.
"""
