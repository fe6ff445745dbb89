"""Records to documents, and documents to a terminal, HTML and markdown: no reading, no conclusions."""
