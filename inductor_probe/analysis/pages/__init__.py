"""What `probe show` tells about a name: which page it is, and what is on it."""
