"""Records to records, pure: what the dump implies."""
