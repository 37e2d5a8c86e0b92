"""Commands about market data: download, list, verify, drop, quote, news, actions."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from trader.cli.options import Shared, SymbolsOption, TimeframeOption, add_command
from trader.cli.study import a_day

if TYPE_CHECKING:
    from trader.app.bars import Actions, Downloaded, Dropped, KeptFiles, News, Quoted

SymbolArgument = Annotated[
    str, typer.Argument(metavar="SYMBOL", help="A share like BRK.B, a coin like BTC/USD.")
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="DAY", help="First day, YYYY-MM-DD.")
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="DAY", help="Last day, YYYY-MM-DD.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module, a group of their own."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Fetch Alpaca's bars and keep them; coins need no key.",
        rich_markup_mode=None,
    )
    add_command(
        group, download, epilog="Example: trader data download --symbols BTC/USD --from 2024-01-01"
    )
    add_command(group, kept, name="list")
    for command in (verify, drop, quote, news, actions):
        add_command(group, command)
    app.add_typer(group, name="data")


def download(
    shared: Shared,
    symbols: SymbolsOption = None,
    first: FromOption = None,
    last: ToOption = None,
    timeframe: TimeframeOption = None,
) -> None:
    """Fetch the bars that are missing, check them and keep them.

    --from sets the day on which the kept bars begin; without it they begin where they do.
    """
    from trader.cli import output

    opened = shared.open(data__source="alpaca", symbols=symbols, data__timeframe=timeframe)
    result = opened.download_bars(first=_day("--from", first), last=_day("--to", last))
    output.notices(result.notices)
    shared.show(result, _tell_downloaded)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def kept(shared: Shared) -> None:
    """List the bars that are kept; nobody is asked."""
    shared.show(shared.open().kept_bars(), _tell_kept)


def verify(shared: Shared) -> None:
    """Check every kept file: its checksums, and whether its bars are sound."""
    result = shared.open().verify_bars()
    shared.show(result, _tell_kept)
    if not result.ok:
        raise typer.Exit(5)


def drop(
    shared: Shared,
    symbol: Annotated[str, typer.Argument(metavar="SYMBOL|all", help="Whose bars, or all.")],
) -> None:
    """Remove kept bars; they are fetched again when they are needed."""
    shared.show(shared.open().drop_bars(symbol), _tell_dropped)


def quote(shared: Shared, symbol: SymbolArgument) -> None:
    """Ask for the newest trade and quote of a symbol."""
    shared.show(shared.open().quote(symbol), _tell_quote)


def news(
    shared: Shared,
    symbol: SymbolArgument,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=1000, help="How many.")] = 10,
) -> None:
    """Ask for the newest news about a symbol."""
    shared.show(shared.open().news(symbol, limit=limit), _tell_news)


def actions(
    shared: Shared, symbol: SymbolArgument, first: FromOption = None, last: ToOption = None
) -> None:
    """Ask for splits, dividends and other corporate actions; of the last year by default."""
    opened = shared.open()
    found = opened.corporate_actions(symbol, first=_day("--from", first), last=_day("--to", last))
    shared.show(found, _tell_actions)


def _day(option: str, text: str | None) -> date | None:
    return None if text is None else a_day(option, text)


def _tell_downloaded(result: Downloaded) -> None:
    from trader.cli import output

    rows = [
        (
            item.symbol,
            item.timeframe,
            item.source,
            item.adjustment,
            f"{item.bars:,}",
            output.day(item.first),
            _minute(item.last),
        )
        for item in result.symbols
        if not item.problem
    ]
    if rows:
        headers = ("symbol", "bars of", "source", "adjusted for", "bars", "first", "last (UTC)")
        output.table("", headers, rows, left=(0, 1, 2, 3))
    output.lines(*(f"{item.symbol}: {item.problem}" for item in result.symbols if item.problem))


def _tell_kept(result: KeptFiles) -> None:
    from trader.cli import output

    if not result.files:
        output.lines(f"no bars are kept in {result.folder}; `trader data download` fetches some")
        return
    rows = [
        (
            item.symbol,
            item.timeframe,
            item.adjustment,
            item.feed,
            f"{item.bars:,}",
            output.day(item.first),
            _minute(item.last),
            f"{item.bytes:,}",
            "damaged" if item.problem else "ok",
        )
        for item in result.files
    ]
    headers = (
        *("symbol", "bars of", "adjustment", "feed", "bars"),
        *("first", "last (UTC)", "bytes", "state"),
    )
    output.table("", headers, rows, left=(0, 1, 2, 3), spare=(7, 2))
    output.lines(*(f"{item.file}: {item.problem}" for item in result.files if item.problem))


def _tell_dropped(result: Dropped) -> None:
    from trader.cli import output

    output.lines(*(f"removed {name}" for name in result.removed))


def _tell_quote(result: Quoted) -> None:
    from trader.cli import output

    seen = result.snapshot
    rows = [("price", output.usd(seen.price), _second(seen.traded_at))]
    if seen.quote is not None:
        rows.append(("bid", output.usd(seen.quote.bid), _second(seen.quote.at)))
        rows.append(("ask", output.usd(seen.quote.ask), _second(seen.quote.at)))
    rows.append(("previous close", output.usd(seen.previous_close), ""))
    title = f"{seen.symbol}, {result.source}, asked at {_second(result.asked_at)} UTC"
    output.table(title, ("", "USD", "as of (UTC)"), rows)


def _tell_news(result: News) -> None:
    from trader.cli import output

    if not result.items:
        output.lines(f"no news about {result.symbol}")
    for item in result.items:
        output.lines(f"{_minute(item.known_at)}  {item.headline}  ({item.source})")


def _tell_actions(result: Actions) -> None:
    from trader.cli import output

    if not result.actions:
        output.lines(f"no corporate actions of {result.symbol}, {result.first} to {result.last}")
    for item in result.actions:
        ratio = "" if item.ratio is None else f"  {item.ratio:g} new shares for one"
        output.lines(f"{item.day}  {item.kind.replace('_', ' ')}{ratio}")


def _minute(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _second(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"
