"""`python -m trader` is `trader`."""

from trader.cli.main import main

if __name__ == "__main__":
    main()
