"""HTML for notebooks: tables, code, pictures of layouts, the drawing of a graph, plots of samples.

What is shown, and in which words, is decided in `report`; here it gets its looks. Nothing is loaded from a
network, no script is used, and all text of a dump is escaped at one place, `page.escaped`.
"""
