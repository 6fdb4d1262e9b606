"""Needs the SDK, on a Python that has none."""

import sys

sys.path[:] = [folder for folder in sys.path if "site-packages" not in folder]
import agentevals_evaluator_sdk
