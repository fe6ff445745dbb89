"""What the compiler logged, from files to records; `run_logs` is the way in."""
