"""The HTTP side of the service: endpoints, limits, guards, and how it starts and stops."""
