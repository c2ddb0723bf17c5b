"""Many scenarios, one after the other or side by side: one summary, one exit code."""
