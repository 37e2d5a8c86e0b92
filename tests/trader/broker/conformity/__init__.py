"""One suite over both transports: unmodified alpaca-py clients, in process and over HTTP."""
