"""The processes of the ranks on one node: started, watched and ended; runs in the agent."""
