"""Whether this machine is fit for dumps and timings."""
