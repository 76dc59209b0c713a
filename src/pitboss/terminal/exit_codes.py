"""Exit codes of commands: success, the work itself failed, an error that the user can fix, stopped by Ctrl-C."""

OK, FAILED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130
