"""Runs a module so that it ends with the process that started it, even if that one is killed.

The arguments are: PARENT-PID MODULE ARGUMENTS... Synapse's own Python runs it as a file, for it has no mindbridge.
"""

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _main() -> None:
    parent = int(sys.argv.pop(1))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        sys.exit("the process that started this one is gone")
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
