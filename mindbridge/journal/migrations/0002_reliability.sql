-- budget: what the server lets the account send, as JSON. limited_at: when it last answered that this is too much.
ALTER TABLE accounts ADD COLUMN budget TEXT;
ALTER TABLE accounts ADD COLUMN limited_at INTEGER NOT NULL DEFAULT 0;

ALTER TABLE sightings ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN said_at INTEGER NOT NULL DEFAULT 0;
-- Of what is there already, no time was kept: it is as old as this.
UPDATE sightings SET seen_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000;
UPDATE messages SET said_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000;

-- expired: its texts are gone, it was settled longer ago than they are kept.
ALTER TABLE turns ADD COLUMN expired INTEGER NOT NULL DEFAULT 0;

-- Events of an account's own that came back with a transaction id of which the journal knows no delivery (yet): after a
-- backup was put back, the turn that sent them runs once more.
CREATE TABLE echoes (
  transaction_id TEXT PRIMARY KEY,
  event_id TEXT NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Rooms whose history can't be read for now: what came there after the position `since` is still to be admitted.
CREATE TABLE rooms_behind (
  agent TEXT NOT NULL,
  room_id TEXT NOT NULL,
  since TEXT NOT NULL,
  PRIMARY KEY (agent, room_id)
) STRICT, WITHOUT ROWID;

-- Rooms that are said to be replaced by others, until that is known to be so or not. had_questions: some were open,
-- which the replacement is told. joined_for_it: the account had no other reason to join the replacement.
CREATE TABLE upgrades (
  agent TEXT NOT NULL,
  event_id TEXT NOT NULL,
  room_id TEXT NOT NULL,
  replacement TEXT NOT NULL,
  had_questions INTEGER NOT NULL,
  joined_for_it INTEGER NOT NULL,
  PRIMARY KEY (agent, event_id)
) STRICT, WITHOUT ROWID;

-- What is to be known about the file itself. restored: it is a copy that `journal backup` made and no bridge has run on.
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- closed: it can't be answered any more and close_reason says why. compare: events of its room may have been missed,
-- so that the server is to be asked for the reactions to it.
CREATE TABLE new_questions (
  seq INTEGER PRIMARY KEY,
  question_id TEXT NOT NULL UNIQUE,
  agent TEXT NOT NULL,
  room_id TEXT NOT NULL,
  thread_id TEXT,
  turn_id TEXT NOT NULL REFERENCES turns (turn_id),
  delivery_id TEXT NOT NULL UNIQUE,
  event_id TEXT UNIQUE,
  requester TEXT NOT NULL,
  text TEXT NOT NULL,
  part TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('posting', 'open', 'answered', 'superseded', 'failed', 'closed')),
  close_reason TEXT,
  compare INTEGER NOT NULL DEFAULT 0,
  revision INTEGER NOT NULL DEFAULT 1,
  recorded_at INTEGER NOT NULL,
  asked_ts INTEGER,
  opened_seq INTEGER,
  closed_seq INTEGER,
  closed_at INTEGER,
  expired INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO new_questions (seq, question_id, agent, room_id, thread_id, turn_id, delivery_id, event_id, requester, text,
    part, state, revision, recorded_at, asked_ts, opened_seq, closed_seq, closed_at)
  SELECT seq, question_id, agent, room_id, thread_id, turn_id, delivery_id, event_id, requester, text, part, state,
    revision, recorded_at, asked_ts, opened_seq, closed_seq,
    CASE WHEN state IN ('posting', 'open') THEN NULL ELSE COALESCE(
      (SELECT answered_ts FROM selections WHERE selections.question_id = questions.question_id), recorded_at) END
  FROM questions;
DROP TABLE questions;
ALTER TABLE new_questions RENAME TO questions;
CREATE INDEX questions_of_thread ON questions (room_id, thread_id, opened_seq);
CREATE INDEX questions_of_room ON questions (room_id, opened_seq);
CREATE INDEX questions_unsettled ON questions (room_id, seq) WHERE state IN ('posting', 'open');
CREATE INDEX questions_unsettled_of_thread ON questions (room_id, thread_id) WHERE state IN ('posting', 'open');
CREATE INDEX questions_unsettled_of_agent ON questions (agent) WHERE state IN ('posting', 'open');
CREATE INDEX questions_to_compare ON questions (agent) WHERE compare = 1;

-- attempted_since: the account's sync position when it was first tried, after which its event is, if the server took
-- it. uncertain: tried, and it can't be told whether the server took it.
CREATE TABLE new_deliveries (
  seq INTEGER PRIMARY KEY,
  delivery_id TEXT NOT NULL UNIQUE,
  agent TEXT NOT NULL,
  room_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('message', 'notice', 'button', 'edit', 'redaction')),
  rank INTEGER NOT NULL,
  turn_id TEXT,
  question_id TEXT,
  target_id TEXT,
  after_turn TEXT,
  content TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending'
    CHECK (state IN ('pending', 'attempted', 'sent', 'refused', 'dropped', 'uncertain')),
  attempted_since TEXT,
  event_id TEXT,
  error TEXT,
  recorded_at INTEGER NOT NULL,
  settled_at INTEGER,
  expired INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO new_deliveries (seq, delivery_id, agent, room_id, kind, rank, turn_id, question_id, target_id, after_turn,
    content, state, attempted_since, event_id, error, recorded_at, settled_at)
  SELECT seq, delivery_id, agent, room_id, kind, rank, turn_id, question_id, target_id, after_turn, content, state,
    CASE WHEN state = 'attempted' THEN (SELECT next_batch FROM accounts WHERE accounts.agent = deliveries.agent) END,
    event_id, error, recorded_at, settled_at
  FROM deliveries;
DROP TABLE deliveries;
ALTER TABLE new_deliveries RENAME TO deliveries;
CREATE INDEX deliveries_unsettled ON deliveries (agent, rank, seq) WHERE state IN ('pending', 'attempted');
CREATE INDEX deliveries_by_event ON deliveries (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX deliveries_of_question ON deliveries (question_id) WHERE question_id IS NOT NULL;
CREATE INDEX deliveries_of_turn ON deliveries (turn_id) WHERE turn_id IS NOT NULL;

-- What retention looks for: settled things, the oldest first, those apart whose texts are gone already.
CREATE INDEX turns_settled ON turns (expired, ended_at) WHERE state = 'done';
CREATE INDEX questions_settled ON questions (expired, closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX deliveries_settled ON deliveries (expired, settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX verdicts_by_age ON verdicts (decided_at);
CREATE INDEX messages_by_age ON messages (said_at);
CREATE INDEX echoes_by_age ON echoes (seen_at);
CREATE INDEX utterances_by_age ON utterances (seq);
-- What is not to be forgotten: the words that a turn is still to be run for, and what refers to a turn.
CREATE INDEX turns_unsettled ON turns (source_event_id) WHERE state <> 'done';
CREATE INDEX questions_of_turn ON questions (turn_id);
CREATE INDEX problems_of_turn ON problems (turn_id);
