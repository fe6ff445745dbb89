"""What the compiler logged, from files to records."""

from inductor_probe.reader.logs.run_logs import read_logs

__all__ = ["read_logs"]
