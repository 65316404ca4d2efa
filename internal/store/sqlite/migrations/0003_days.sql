-- What everybody spent together on one day, per account (bot, route:NAME, person:NAME), and what running calls hold.
CREATE TABLE days (
    account       TEXT NOT NULL,
    day           TEXT NOT NULL,
    tokens        INTEGER NOT NULL DEFAULT 0,
    cost          INTEGER NOT NULL DEFAULT 0,
    steps         INTEGER NOT NULL DEFAULT 0,
    raised_tokens INTEGER NOT NULL DEFAULT 0,
    raised_cost   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, account)
) WITHOUT ROWID;

CREATE TABLE day_holds (
    account TEXT NOT NULL,
    day     TEXT NOT NULL,
    holder  TEXT NOT NULL,
    tokens  INTEGER NOT NULL,
    cost    INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    PRIMARY KEY (day, account, holder)
) WITHOUT ROWID;
