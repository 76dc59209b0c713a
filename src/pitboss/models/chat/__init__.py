"""Chat completions, the protocol that nearly every server speaks: writing questions, reading replies, asking over HTTP."""
