"""Text to records, with the standard library alone: nothing of a dump is imported, executed or unpickled."""
