"""Brokers: where orders go. The paper broker needs no key and cannot trade."""
