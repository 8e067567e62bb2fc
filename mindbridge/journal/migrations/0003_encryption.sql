-- Encrypted events whose key has not come yet, with the event as JSON. seq: their place, which is that of their sighting.
CREATE TABLE unread (
  agent TEXT NOT NULL,
  event_id TEXT NOT NULL,
  room_id TEXT NOT NULL,
  thread_id TEXT,
  sender TEXT NOT NULL,
  source TEXT NOT NULL,
  seq INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  told INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (agent, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX unread_by_age ON unread (seen_at);
