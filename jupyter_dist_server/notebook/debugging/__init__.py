"""JupyterLab's debugger on ranks: the kernel and its ranks are one debuggee; runs in the kernel."""
