-- Times are nanoseconds since 1970 in UTC, 0 for never. Columns hold what is searched, ordered or fenced; doc holds the rest.

CREATE TABLE tasks (
    id           TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('queued','running','parked','completed','failed','cancelled','expired')),
    session_id   TEXT NOT NULL,
    host         TEXT NOT NULL DEFAULT '',
    fence        INTEGER NOT NULL DEFAULT 0,
    lease_until  INTEGER NOT NULL DEFAULT 0,
    cancel_by    TEXT NOT NULL DEFAULT '',
    job          INTEGER NOT NULL DEFAULT 0,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    ended        INTEGER NOT NULL DEFAULT 0,
    doc          TEXT NOT NULL
);
CREATE UNIQUE INDEX tasks_one_live ON tasks (conversation) WHERE state IN ('queued','running','parked');
CREATE INDEX tasks_due ON tasks (state, lease_until) WHERE state IN ('queued','running');
CREATE INDEX tasks_conversation ON tasks (conversation, created);
CREATE INDEX tasks_created ON tasks (created);
CREATE INDEX tasks_state ON tasks (state, created);

CREATE TABLE events (
    key     TEXT PRIMARY KEY,
    arrow   TEXT NOT NULL,
    kind    TEXT NOT NULL,
    reason  TEXT NOT NULL DEFAULT '',
    actor   TEXT NOT NULL DEFAULT '',
    task_id TEXT NOT NULL DEFAULT '',
    ask_id  TEXT NOT NULL DEFAULT '',
    result  TEXT NOT NULL DEFAULT '',
    again   INTEGER NOT NULL DEFAULT 0,
    at      INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE inbox (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL REFERENCES tasks (id),
    actor   TEXT NOT NULL,
    text    TEXT NOT NULL,
    at      INTEGER NOT NULL
);
CREATE INDEX inbox_task ON inbox (task_id, id);

CREATE TABLE asks (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    id      TEXT NOT NULL UNIQUE,
    task_id TEXT NOT NULL REFERENCES tasks (id),
    state   TEXT NOT NULL CHECK (state IN ('open','answered','expired','cancelled','superseded')),
    due     INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    doc     TEXT NOT NULL
);
CREATE INDEX asks_task ON asks (task_id, state);
CREATE INDEX asks_due ON asks (due) WHERE state = 'open' AND due > 0;

CREATE TABLE posts (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL UNIQUE,
    task_id     TEXT NOT NULL,
    ask_id      TEXT NOT NULL,
    connection  TEXT NOT NULL,
    place       TEXT NOT NULL,
    edits       TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('pending','sent','dead')),
    next_at     INTEGER NOT NULL,
    taken_until INTEGER NOT NULL DEFAULT 0,
    uncertain   INTEGER NOT NULL DEFAULT 0,
    tries       INTEGER NOT NULL DEFAULT 0,
    cause       TEXT NOT NULL DEFAULT '',
    ref         TEXT NOT NULL DEFAULT '',
    created     INTEGER NOT NULL,
    doc         TEXT NOT NULL
);
CREATE INDEX posts_pending ON posts (place, seq, next_at, taken_until, connection, edits) WHERE state = 'pending';
CREATE INDEX posts_task ON posts (task_id, seq);
CREATE INDEX posts_edits ON posts (edits) WHERE state = 'pending' AND edits <> '';

CREATE TABLE grants (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    route   TEXT NOT NULL,
    task_id TEXT NOT NULL,
    rule    TEXT NOT NULL,
    by      TEXT NOT NULL,
    ask_id  TEXT NOT NULL,
    at      INTEGER NOT NULL,
    UNIQUE (route, task_id, rule)
);
CREATE INDEX grants_task ON grants (task_id) WHERE task_id <> '';

CREATE TABLE entries (
    session_id TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    doc        TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;
