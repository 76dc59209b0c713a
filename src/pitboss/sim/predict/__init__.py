"""What a run on the predict venue was worth: its calls, how good its probabilities were, and what it is held against."""
