"""The verbs of `probe` as functions, and the objects they return: the names of the package itself.

A method imports what it needs when it is called: one verb has no use for the imports of the others, which
together take longer than reading most dumps.
"""
