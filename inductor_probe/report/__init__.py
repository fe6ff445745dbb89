"""Records to rich renderables and to JSON: no reading, no conclusions, no printing."""
