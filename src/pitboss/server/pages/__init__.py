"""The pages of the web app, rendered on the server from the components of `report`, one module for each.

A page module has a `router`; it is found by its place and needs no registration. `frame.py` draws what surrounds every page.
"""
