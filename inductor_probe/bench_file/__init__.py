"""`output_code.py` to a standalone bench file, and to its text when edits in it are carried over."""
