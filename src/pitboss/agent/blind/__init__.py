"""Anonymising text for blind runs, whatever the venue: the mapping of symbols and dates, and neutral wording."""
