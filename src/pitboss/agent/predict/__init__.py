"""The agent on the predict venue: what it may know at a tick and how it is told. The loop and the deciders are shared."""
