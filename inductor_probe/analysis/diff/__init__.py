"""What changed between two graphs or runs."""
