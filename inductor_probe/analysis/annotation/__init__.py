"""What `annotate` needs: statements of a kernel's text, and the nodes whose values flow through them."""
