"""Facts of this machine: processors, GPUs, the compiler, and what it can copy and multiply at best."""
