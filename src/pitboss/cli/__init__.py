"""The command line: one file for each group of commands.

Commands say what is typed and what comes back. Everything heavy is imported inside a command when it runs, so that
help is instant; the work itself is in the layers below.
"""
