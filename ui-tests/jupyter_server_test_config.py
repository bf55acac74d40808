"""The Jupyter server of the browser tests: no token, and nothing of the user's own."""

import os
from tempfile import mkdtemp

from jupyterlab.galata import configure_jupyter_server

configure_jupyter_server(c)  # noqa: F821

c.ServerApp.port = int(os.environ["JUPYTER_DIST_TEST_PORT"])  # noqa: F821
c.ServerApp.allow_root = True  # noqa: F821
# Another process may take a TCP port that is chosen for a kernel before the kernel has it.
c.KernelManager.transport = "ipc"  # noqa: F821
# A kernel that a test kills stays away.
c.KernelManager.autorestart = False  # noqa: F821
# A queue of the tests alone.
os.environ["XDG_STATE_HOME"] = mkdtemp(prefix="galata-state-")
# Curves of jobs that run for seconds.
os.environ["JDIST_SAMPLE_EVERY"] = "0.5"
c.LabApp.user_settings_dir = mkdtemp(prefix="galata-settings-")  # noqa: F821
c.Application.log_level = "ERROR"  # noqa: F821
