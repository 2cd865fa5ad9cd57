"""The service: HTTP, SSE and WebSocket over hubs with a store (DESIGN 7). `pip install 'nearcast[service]'`."""
