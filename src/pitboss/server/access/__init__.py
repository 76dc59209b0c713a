"""Who may do what on the server: callers, roles, sessions, tokens, and the checks that every request passes."""
