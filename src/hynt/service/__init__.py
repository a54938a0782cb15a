"""A trained run over HTTP: JSON for programs, pages for people.

The front answers requests and looks after limits; it never loads torch. A second process holds the model and answers
what the front passes on, many questions at a time.
"""
