"""Chat completions: the protocol that most providers speak."""
