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
    """
    ALTER TABLE market ADD COLUMN halted TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE market ADD COLUMN blocked TEXT NOT NULL DEFAULT '';
    ALTER TABLE market ADD COLUMN liquidity_seed INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE market ADD COLUMN partial_fills REAL NOT NULL DEFAULT 0;
    ALTER TABLE market ADD COLUMN volume_share REAL;
    ALTER TABLE tickets ADD COLUMN filled_quantity TEXT NOT NULL DEFAULT '0';
    ALTER TABLE tickets ADD COLUMN filled_notional TEXT NOT NULL DEFAULT '0';
    ALTER TABLE tickets ADD COLUMN fees TEXT NOT NULL DEFAULT '0';
    ALTER TABLE tickets ADD COLUMN notional TEXT;
    ALTER TABLE tickets ADD COLUMN trail_price TEXT;
    ALTER TABLE tickets ADD COLUMN trail_percent TEXT;
    ALTER TABLE tickets ADD COLUMN high_water_mark TEXT;
    ALTER TABLE tickets ADD COLUMN triggered_ns INTEGER;
    ALTER TABLE tickets ADD COLUMN extended_hours INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE tickets ADD COLUMN replaces TEXT;
    ALTER TABLE tickets ADD COLUMN replaced_by TEXT;
    -- until now every fill was whole: whole shares at prices of at most four decimals
    UPDATE tickets SET
        filled_quantity = quantity,
        filled_notional = (
            SELECT printf('%d.%04d', units / 10000, units % 10000) FROM (
                SELECT CAST(quantity AS INTEGER)
                     * CAST(round(CAST(filled_price AS REAL) * 10000) AS INTEGER) AS units)),
        fees = (SELECT fee FROM trades WHERE trades.order_id = tickets.order_id)
    WHERE status = 'filled';
    ALTER TABLE tickets DROP COLUMN filled_price;
    ALTER TABLE trades ADD COLUMN cumulative TEXT NOT NULL DEFAULT '0';
    ALTER TABLE trades ADD COLUMN remaining TEXT NOT NULL DEFAULT '0';
    UPDATE trades SET cumulative = quantity;
    CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        at_ns INTEGER NOT NULL,
        order_id TEXT NOT NULL,
        ticket TEXT NOT NULL,
        execution_id TEXT,
        price TEXT,
        quantity TEXT,
        position_quantity TEXT
    );
    CREATE TABLE commands (
        sequence INTEGER PRIMARY KEY,
        clock_ns INTEGER NOT NULL,
        method TEXT NOT NULL,
        path TEXT NOT NULL,
        body BLOB
    );
    """,
    """
    CREATE TABLE movements (
        sequence INTEGER PRIMARY KEY,
        activity_id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        symbol TEXT,
        amount TEXT NOT NULL,
        quantity TEXT NOT NULL,
        shares TEXT,
        per_share TEXT,
        description TEXT NOT NULL,
        at_ns INTEGER NOT NULL,
        after_trade INTEGER NOT NULL
    );
    CREATE TABLE happenings (
        sequence INTEGER PRIMARY KEY,
        symbol TEXT NOT NULL,
        session TEXT NOT NULL,
        at_ns INTEGER NOT NULL,
        new_rate INTEGER NOT NULL,
        old_rate INTEGER NOT NULL,
        per_share TEXT NOT NULL,
        UNIQUE (symbol, session, per_share)
    );
    CREATE TABLE standing (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        generation INTEGER NOT NULL,
        suspended INTEGER NOT NULL,
        fractional INTEGER NOT NULL
    );
    INSERT INTO standing VALUES (1, 1, 0, 1);
    """,
)
