"""Records to rich renderables: no reading, no conclusions, no printing."""
