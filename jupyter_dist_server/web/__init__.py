"""REST and WebSocket handlers: translate, authorise, delegate."""
