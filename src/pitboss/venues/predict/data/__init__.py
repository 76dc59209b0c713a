"""The predict protocol as others tell it: its indexer now, and files that were recorded. Nothing here writes to a chain."""
