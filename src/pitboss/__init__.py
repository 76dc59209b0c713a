"""pitboss runs LLM agents that act in markets and communities, and keeps them inside hard limits."""

__version__ = "0.1.0"
