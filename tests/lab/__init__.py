# SPDX-License-Identifier: Apache-2.0
"""The test lab: see lab.py. Standard library, ip(8) and nsenter(1) only."""

from .lab import DEAD, METADATA, PORTS, PRIVATE, UDP_ECHO, Lab, v4, v6
from .loop import wait_for
from .run import Result, child_of, read_log
from .web import pattern, ws_frame

__all__ = ["DEAD", "METADATA", "PORTS", "PRIVATE", "UDP_ECHO", "Lab", "Result", "child_of", "pattern", "read_log", "v4", "v6", "wait_for", "ws_frame"]
