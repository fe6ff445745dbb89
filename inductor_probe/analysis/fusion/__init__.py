"""What was fused when, and what was not and why."""
