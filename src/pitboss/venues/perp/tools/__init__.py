"""The built-in tools of the perp venue, one module each with `TOOL = define_tool(...)`; the registry discovers them."""
