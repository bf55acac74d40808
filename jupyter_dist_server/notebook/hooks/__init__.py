"""Hooks in the notebook's shell and kernel, such as completion and widgets; runs there."""
