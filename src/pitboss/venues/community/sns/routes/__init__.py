"""The handlers of the forum server, grouped by who calls them, and the table of all routes (`route_table.py`)."""
