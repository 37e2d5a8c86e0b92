"""The tables of the exchange's SQLite file, as numbered migrations."""

from __future__ import annotations

MIGRATIONS = (
    """
    CREATE TABLE market (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        source TEXT NOT NULL,
        timeframe TEXT NOT NULL,
        slippage_bps REAL NOT NULL,
        fee_bps REAL NOT NULL,
        commission_per_order REAL NOT NULL,
        initial_cash TEXT NOT NULL,
        cash TEXT NOT NULL,
        begun_ns INTEGER NOT NULL,
        clock_ns INTEGER NOT NULL
    );
    CREATE TABLE tickets (
        sequence INTEGER PRIMARY KEY,
        order_id TEXT NOT NULL UNIQUE,
        client_order_id TEXT NOT NULL UNIQUE,
        family_id TEXT NOT NULL,
        symbol TEXT NOT NULL,
        side TEXT NOT NULL,
        quantity TEXT NOT NULL,
        order_type TEXT NOT NULL,
        order_class TEXT NOT NULL,
        time_in_force TEXT NOT NULL,
        limit_price TEXT,
        stop_price TEXT,
        status TEXT NOT NULL,
        live INTEGER NOT NULL,
        reserved TEXT NOT NULL,
        submitted_ns INTEGER NOT NULL,
        updated_ns INTEGER NOT NULL,
        expires_ns INTEGER,
        closed_ns INTEGER,
        filled_price TEXT,
        reason TEXT NOT NULL,
        is_open INTEGER NOT NULL
    );
    CREATE INDEX tickets_family ON tickets (family_id);
    CREATE INDEX tickets_open ON tickets (sequence) WHERE is_open = 1;
    CREATE TABLE holdings (
        symbol TEXT PRIMARY KEY,
        quantity TEXT NOT NULL,
        average_price TEXT NOT NULL,
        opened_ns INTEGER NOT NULL
    );
    CREATE TABLE trades (
        sequence INTEGER PRIMARY KEY,
        execution_id TEXT NOT NULL UNIQUE,
        order_id TEXT NOT NULL,
        symbol TEXT NOT NULL,
        side TEXT NOT NULL,
        quantity TEXT NOT NULL,
        price TEXT NOT NULL,
        fee TEXT NOT NULL,
        filled_ns INTEGER NOT NULL
    );
    CREATE INDEX trades_filled ON trades (filled_ns);
    """,
)
