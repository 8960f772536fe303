"""Policies on other machines: a server and a client that speak msgpack over a websocket."""
