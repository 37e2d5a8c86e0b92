"""The pipeline: slots, evidence and the one cycle that every mode runs."""
