"""The options of each verb: a frozen record, from which every door to the verb is made.

A field has a type, a default and a text. The command line's options and help (`cli/options.py`), the keyword
arguments of the function in Python (`options/verb.py`), and the schema of what a program may ask for
(`fields.input_schema`) are read from it: `tests/cli/test_options.py` holds them against each other.
"""
