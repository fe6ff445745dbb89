"""Where dumps are: named, nested, renamed, packed in archives, or left in inductor's cache."""
