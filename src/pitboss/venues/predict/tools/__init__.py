"""The tools of the predict venue, one file each with `TOOL = define_tool(...)`. The registry finds them by looking in here."""
