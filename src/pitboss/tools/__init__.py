"""Tools: what a model may look at. One file a tool in `builtin/`; `registry` finds them, hydration whitelists them."""
