"""Sentences for typed records: nothing reads one back. Those of decisions are in `catalogue/`."""
