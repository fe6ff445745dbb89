"""Sentences for typed records: the only place that has them, and nothing reads one back."""
