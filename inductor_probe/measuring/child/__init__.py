"""What runs in a process with torch: it imports torch, `harness`, `scenario` and `errors`, and nothing else.

So it runs under an interpreter that has none of what this package depends on besides torch.
"""
