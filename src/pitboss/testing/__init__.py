"""Shipped fakes and builders for tests of pitboss and of what people build on it."""
