"""Looking for good settings: many small runs, judged on the validation split alone."""
