"""Anthropic's messages and Google's generateContent: the protocols of these providers, encoded and read here.

Models at their compatible addresses (`anthropic-chat/`, `google-chat/`) go through `pitboss.models.chat` instead.
"""
