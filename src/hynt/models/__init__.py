"""The models: one short file each, readable beside its paper; `layers` holds what two or more share."""
