"""What is read of running pools for who looks at them; runs in the owner of the pools."""
