# SPDX-License-Identifier: Apache-2.0
"""Attempts to get past the gate: see attempt.py."""
