"""What the models are told: versioned Markdown, one file a speaker."""
