"""The bench room: runs bench files in child processes, and judges what they measured."""
