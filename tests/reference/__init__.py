"""A second, slow telling of the perp venue, written from its page alone.

It shares no code with the product: nothing here imports `pitboss`, and nothing here was written with the
product's engine or world in view. The product is compared with it on random and on real markets.
"""
