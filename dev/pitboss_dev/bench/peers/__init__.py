"""Other backtesters, measured in the same run. Each is installed in an environment of its own and never imported here."""
