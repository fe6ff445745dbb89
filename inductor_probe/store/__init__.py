"""Every file that this project writes and reads back: a module a format, writing and reading side by side."""
