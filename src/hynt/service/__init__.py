"""A trained run over HTTP: JSON for programs, pages for people.

The HTTP process answers requests and looks after limits; it never loads torch. The inference process holds the model
and answers what the first one passes on, many questions at a time.
"""
