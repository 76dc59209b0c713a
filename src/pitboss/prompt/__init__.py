"""Text composition. Standard library only, so that a preview and a run share one function byte for byte."""
