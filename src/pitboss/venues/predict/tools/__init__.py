"""The tools of the predict venue, one file each with `TOOL = define_tool(...)`; the registry discovers them here."""
