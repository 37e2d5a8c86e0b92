"""The composition root: from a configuration to a running product; the only chooser of adapters."""

from trader.app.opening import App, open_app

__all__ = ["App", "open_app"]
