"""A Ray cluster of two nodes on this machine: each has a processor, and one two GPUs, as far as Ray knows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

CLUSTER = """\
import sys
from ray.cluster_utils import Cluster

node = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=node)
cluster.add_node(**node, num_gpus=2)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture(scope="module")
def ray_address(surroundings: None) -> Iterator[str]:
    """Return the address of a cluster; its processes end with the file: they work though nobody asks them."""
    if find_spec("ray") is None:
        pytest.skip("ray is not installed: pip install ray")
    # Sockets lie below the folder, and the path of one has 107 characters at most (unix(7)). Ray takes its
    # `ray` for there on a machine where it has never run.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        Path(folder, "ray").mkdir()
        with subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder},
        ) as process:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if address:
                yield address
            _, errors = process.communicate()  # the end of its input is what it waits for
            assert address, f"no cluster: {errors}"
