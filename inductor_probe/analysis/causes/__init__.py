"""Decisions and a graph to causes, pure: whom a decision concerns, what is at stake, what would turn it."""
