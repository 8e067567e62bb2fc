"""`python -m mindbridge` is `mindbridge`."""

import sys

from mindbridge.cli.main import main

sys.exit(main())
