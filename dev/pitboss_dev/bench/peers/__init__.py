"""Other people's backtesters, measured beside us. They live in environments of their own and are never imported here."""
