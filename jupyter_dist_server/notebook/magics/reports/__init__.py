"""The tables and sentences that magics show; runs in the notebook kernel."""
