"""What runs in the processes of scripts, so that others can ask why they wait."""
