-- Times are milliseconds since 1970, by the server's clock where the name says server_ts, else by the bridge's.

-- Tells a journal from another program's file.
PRAGMA application_id = 0x6D627267;

CREATE TABLE accounts (
  agent TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  next_batch TEXT,
  wait_until INTEGER NOT NULL DEFAULT 0
) STRICT;

-- accepted: an invitation was taken, the join is not through. refused: to be declined.
CREATE TABLE memberships (
  agent TEXT NOT NULL,
  room_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('accepted', 'refused', 'joined', 'left')),
  invited_ts INTEGER,
  PRIMARY KEY (agent, room_id)
) STRICT, WITHOUT ROWID;

-- Every event an account was shown, by id and time only. seq orders all that the bridge has seen.
-- judged: this account decided what it means; history from before an account counted is only sighted.
CREATE TABLE sightings (
  seq INTEGER PRIMARY KEY,
  agent TEXT NOT NULL,
  event_id TEXT NOT NULL,
  server_ts INTEGER NOT NULL,
  judged INTEGER NOT NULL,
  UNIQUE (event_id, agent)
) STRICT;

-- What was said in a conversation, for the agents' history: accepted words of people, answers, replies of agents.
CREATE TABLE messages (
  message_id INTEGER PRIMARY KEY,
  room_id TEXT NOT NULL,
  thread_id TEXT,
  event_id TEXT UNIQUE,
  delivery_id TEXT UNIQUE,
  sender TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX messages_of_thread ON messages (room_id, thread_id, message_id);

-- The last thing an agent was seen to say in a thread (thread_id '' = the room's main timeline). turn_id is NULL while
-- only the server knows which delivery the event is; once that is acknowledged, the delivery of event_id tells the turn.
CREATE TABLE utterances (
  agent TEXT NOT NULL,
  room_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  turn_id TEXT,
  seq INTEGER NOT NULL,
  PRIMARY KEY (room_id, agent, thread_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX utterances_in_order ON utterances (room_id, agent, seq);

CREATE TABLE turns (
  seq INTEGER PRIMARY KEY,
  turn_id TEXT NOT NULL UNIQUE,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('message', 'selection')),
  room_id TEXT NOT NULL,
  thread_id TEXT,
  source_event_id TEXT NOT NULL,
  sender TEXT NOT NULL,
  sender_name TEXT NOT NULL,
  text TEXT NOT NULL,
  selection TEXT,
  state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'done', 'parked')),
  failures INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  reply TEXT,
  queued_at INTEGER NOT NULL,
  ended_at INTEGER,
  UNIQUE (agent, source_event_id)
) STRICT;
CREATE INDEX turns_by_state ON turns (agent, state, seq);
CREATE INDEX turns_of_thread ON turns (room_id, thread_id, agent, state, seq);

CREATE TABLE questions (
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
  state TEXT NOT NULL CHECK (state IN ('posting', 'open', 'answered', 'superseded', 'failed')),
  revision INTEGER NOT NULL DEFAULT 1,
  recorded_at INTEGER NOT NULL,
  asked_ts INTEGER,
  opened_seq INTEGER,
  closed_seq INTEGER
) STRICT;
CREATE INDEX questions_of_thread ON questions (room_id, thread_id, opened_seq);
CREATE INDEX questions_of_room ON questions (room_id, opened_seq);
CREATE INDEX questions_unsettled ON questions (room_id) WHERE state IN ('posting', 'open');

-- The one answer that was taken for a question. source_event_id is unique over all agents.
CREATE TABLE selections (
  question_id TEXT PRIMARY KEY REFERENCES questions (question_id),
  source_event_id TEXT NOT NULL UNIQUE,
  turn_id TEXT NOT NULL UNIQUE REFERENCES turns (turn_id),
  answered_by TEXT NOT NULL,
  answered_by_name TEXT NOT NULL,
  number INTEGER NOT NULL,
  key TEXT NOT NULL,
  answered_ts INTEGER NOT NULL
) STRICT;

-- What became of each event that could have been an answer; decided once, whichever account saw it first.
CREATE TABLE verdicts (
  event_id TEXT PRIMARY KEY,
  question_id TEXT,
  sender TEXT,
  verdict TEXT NOT NULL,
  reason TEXT NOT NULL,
  decided_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was wrong with an agent's reply; told with the agent's next turn in the thread, once. told_in: the turn that was
-- told, also when it is tried again; a turn that is parked has been told nothing.
CREATE TABLE problems (
  problem_id INTEGER PRIMARY KEY,
  agent TEXT NOT NULL,
  room_id TEXT NOT NULL,
  thread_id TEXT,
  turn_id TEXT NOT NULL,
  code TEXT NOT NULL,
  message TEXT NOT NULL,
  told_in TEXT
) STRICT;
CREATE INDEX problems_untold ON problems (agent, room_id, thread_id) WHERE told_in IS NULL;
CREATE INDEX problems_told ON problems (told_in) WHERE told_in IS NOT NULL;

-- Outgoing events. Nothing is sent whose row is not here; delivery_id is the transaction id.
-- target_id: the delivery whose event this one relates to. after_turn: wait until that turn is no longer queued.
CREATE TABLE deliveries (
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
  state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'attempted', 'sent', 'refused', 'dropped')),
  event_id TEXT,
  error TEXT,
  recorded_at INTEGER NOT NULL,
  settled_at INTEGER
) STRICT;
CREATE INDEX deliveries_unsettled ON deliveries (agent, rank, seq) WHERE state IN ('pending', 'attempted');
CREATE INDEX deliveries_by_event ON deliveries (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX deliveries_of_question ON deliveries (question_id) WHERE question_id IS NOT NULL;
