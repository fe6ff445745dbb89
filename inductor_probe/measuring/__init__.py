"""Cases of scenarios timed and compared: which cases, in which processes, and what follows.

`child/` runs beside torch, in a process of its own, under any interpreter that has torch.
"""
