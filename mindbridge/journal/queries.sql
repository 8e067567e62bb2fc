-- name: kind_of_file
SELECT user_version AS version, application_id AS application, (SELECT COUNT(*) FROM sqlite_schema) AS entries
FROM pragma_user_version, pragma_application_id

-- name: account_of
SELECT user_id, next_batch, wait_until, budget FROM accounts WHERE agent = :agent

-- name: forget_memberships_of_former_account
DELETE FROM memberships WHERE agent = :agent
  AND EXISTS (SELECT 1 FROM accounts WHERE agent = :agent AND user_id <> :user_id)

-- name: forget_behind_of_former_account
DELETE FROM rooms_behind WHERE agent = :agent
  AND EXISTS (SELECT 1 FROM accounts WHERE agent = :agent AND user_id <> :user_id)

-- name: rooms_behind
SELECT b.room_id, b.since, m.state, m.invited_ts FROM rooms_behind AS b JOIN memberships AS m USING (agent, room_id)
WHERE b.agent = :agent

-- name: record_behind
INSERT INTO rooms_behind (agent, room_id, since) VALUES (:agent, :room_id, :since) ON CONFLICT DO NOTHING

-- name: forget_behind
DELETE FROM rooms_behind WHERE agent = :agent AND room_id = :room_id

-- name: forget_upgrades_of_former_account
DELETE FROM upgrades WHERE agent = :agent
  AND EXISTS (SELECT 1 FROM accounts WHERE agent = :agent AND user_id <> :user_id)

-- name: upgrades
SELECT u.event_id, u.room_id, u.replacement, u.had_questions, u.joined_for_it, m.state AS membership
FROM upgrades AS u LEFT JOIN memberships AS m ON m.agent = u.agent AND m.room_id = u.replacement
WHERE u.agent = :agent ORDER BY u.event_id

-- name: record_upgrade
INSERT INTO upgrades (agent, event_id, room_id, replacement, had_questions, joined_for_it)
VALUES (:agent, :event_id, :room_id, :replacement, EXISTS (SELECT 1 FROM questions
  WHERE agent = :agent AND room_id = :room_id AND state IN ('posting', 'open')), :joined_for_it)
ON CONFLICT DO NOTHING

-- name: wanted_in_replacement
UPDATE upgrades SET joined_for_it = 0 WHERE agent = :agent AND replacement = :room_id

-- name: forget_upgrade
DELETE FROM upgrades WHERE agent = :agent AND event_id = :event_id

-- name: agents_of_open_questions
SELECT DISTINCT agent FROM questions WHERE state IN ('posting', 'open')

-- name: open_questions_of_agent
SELECT question_id, delivery_id, agent, room_id, part, state FROM questions
WHERE agent = :agent AND state IN ('posting', 'open') ORDER BY seq

-- name: drop_deliveries_of_agent
UPDATE deliveries SET state = 'dropped', error = :error, settled_at = :now
WHERE agent = :agent AND state IN ('pending', 'attempted')

-- name: drop_deliveries_of_room
UPDATE deliveries SET state = 'dropped', error = :error, settled_at = :now
WHERE agent = :agent AND room_id = :room_id AND state IN ('pending', 'attempted')

-- name: close_questions_of_room
UPDATE questions SET state = 'closed', close_reason = :reason, closed_seq = :seq, closed_at = :now, compare = 0
WHERE agent = :agent AND room_id = :room_id AND state IN ('posting', 'open')

-- name: drop_unsent_buttons_of_room
UPDATE deliveries SET state = 'dropped', error = 'the question was closed first', settled_at = :now
WHERE agent = :agent AND room_id = :room_id AND kind = 'button' AND state = 'pending'

-- name: record_account
INSERT INTO accounts (agent, user_id) VALUES (:agent, :user_id)
ON CONFLICT (agent) DO UPDATE SET user_id = excluded.user_id, next_batch = NULL, wait_until = 0, limited_at = 0, budget = NULL
  WHERE user_id <> excluded.user_id

-- name: advance_account
UPDATE accounts SET next_batch = :next_batch WHERE agent = :agent

-- name: hold_account
UPDATE accounts SET wait_until = :wait_until, limited_at = :now, budget = :budget WHERE agent = :agent

-- name: learn_budget
UPDATE accounts SET budget = :budget WHERE agent = :agent

-- name: last_seq
SELECT COALESCE(MAX(seq), 0) AS seq FROM sightings

-- name: sightings_of
SELECT event_id, agent, judged FROM sightings WHERE event_id IN (SELECT value FROM json_each(:events))

-- name: verdicts_of
SELECT event_id FROM verdicts WHERE event_id IN (SELECT value FROM json_each(:events))

-- name: memberships_of
SELECT room_id, state, invited_ts FROM memberships
WHERE agent = :agent AND room_id IN (SELECT value FROM json_each(:rooms))

-- name: memberships_in_state
SELECT room_id, state, invited_ts FROM memberships WHERE agent = :agent AND state = :state

-- name: record_membership
INSERT INTO memberships (agent, room_id, state, invited_ts) VALUES (:agent, :room_id, :state, :invited_ts)
ON CONFLICT (agent, room_id) DO UPDATE SET state = excluded.state, invited_ts = excluded.invited_ts

-- name: participations_in
SELECT json_extract(value, '$[0]') AS room_id, json_extract(value, '$[1]') AS thread_id FROM json_each(:threads)
WHERE EXISTS (SELECT 1 FROM turns AS t
  WHERE t.room_id = json_extract(value, '$[0]') AND t.thread_id = json_extract(value, '$[1]') AND t.agent = :agent)

-- name: questions_touched
WITH touched (question_id) AS (
  SELECT q.question_id FROM json_each(:rooms) AS room JOIN questions AS q ON q.seq IN (
    SELECT seq FROM questions WHERE state IN ('posting', 'open') AND room_id = room.value ORDER BY seq DESC LIMIT :most)
  UNION
  SELECT q.question_id FROM json_each(:threads) JOIN questions AS q
    ON q.room_id = json_extract(value, '$[0]') AND q.thread_id IS json_extract(value, '$[1]')
    AND q.state IN ('posting', 'open')
  UNION
  SELECT question_id FROM questions WHERE event_id IN (SELECT value FROM json_each(:targets))
  UNION
  SELECT question_id FROM questions WHERE question_id IN (SELECT value FROM json_each(:claims))
  UNION
  SELECT (SELECT question_id FROM questions AS q
            WHERE q.room_id = json_extract(value, '$[0]') AND q.thread_id IS json_extract(value, '$[1]')
            AND q.opened_seq IS NOT NULL ORDER BY q.opened_seq DESC LIMIT 1)
    FROM json_each(:threads)
  UNION
  SELECT (SELECT question_id FROM questions AS q WHERE q.room_id = value AND q.opened_seq IS NOT NULL
            ORDER BY q.opened_seq DESC LIMIT 1)
    FROM json_each(:rooms)
)
SELECT q.seq, q.question_id, q.agent, q.room_id, q.thread_id, q.turn_id, q.delivery_id, q.event_id, q.requester, q.text,
  q.part, q.state, q.revision, q.recorded_at, q.asked_ts, q.opened_seq, q.closed_seq,
  s.number AS taken_number, s.answered_by_name AS taken_by_name, s.answered_ts AS taken_ts,
  COALESCE((SELECT MAX(u.seq) FROM utterances AS u WHERE u.agent = q.agent AND u.room_id = q.room_id
    AND u.thread_id = COALESCE(q.thread_id, '') AND COALESCE(u.turn_id,
      (SELECT d.turn_id FROM deliveries AS d WHERE d.event_id = u.event_id)) IS NOT q.turn_id), 0) AS last_said_in_thread,
  COALESCE((SELECT MAX(u.seq) FROM utterances AS u WHERE u.agent = q.agent AND u.room_id = q.room_id
    AND COALESCE(u.turn_id,
      (SELECT d.turn_id FROM deliveries AS d WHERE d.event_id = u.event_id)) IS NOT q.turn_id), 0) AS last_said_in_room
FROM touched JOIN questions AS q USING (question_id) LEFT JOIN selections AS s USING (question_id)
ORDER BY q.seq

-- name: turns_of_events
SELECT delivery_id, event_id, turn_id FROM deliveries WHERE kind = 'message' AND turn_id IS NOT NULL AND (
  delivery_id IN (SELECT value FROM json_each(:transactions)) OR event_id IN (SELECT value FROM json_each(:events)))

-- name: record_sighting
INSERT INTO sightings (seq, agent, event_id, server_ts, judged, seen_at)
VALUES (:seq, :agent, :event_id, :server_ts, :judged, :now)

-- name: record_unread
INSERT INTO unread (agent, event_id, room_id, thread_id, sender, source, seq, seen_at)
VALUES (:agent, :event_id, :room_id, :thread_id, :sender, :source, :seq, :now)

-- name: forget_withdrawn
DELETE FROM unread WHERE agent = :agent AND event_id = :event_id

-- name: unread_of_agent
SELECT event_id, room_id, thread_id, sender, source, seq, seen_at, told FROM unread WHERE agent = :agent ORDER BY seq

-- name: places_of_unread
SELECT event_id, seq FROM unread WHERE agent = :agent AND event_id IN (SELECT value FROM json_each(:events))

-- name: forget_sightings_of_unread
DELETE FROM sightings WHERE (agent, event_id) IN (SELECT agent, event_id FROM unread
  WHERE agent = :agent AND event_id IN (SELECT value FROM json_each(:events)))

-- name: forget_unread
DELETE FROM unread WHERE agent = :agent AND event_id IN (SELECT value FROM json_each(:events))

-- name: tell_unread
UPDATE unread SET told = 1 WHERE agent = :agent AND room_id = :room_id AND sender = :sender

-- name: forget_unread_of_room
DELETE FROM unread WHERE agent = :agent AND room_id = :room_id

-- name: record_echo
INSERT INTO echoes (transaction_id, event_id, seen_at)
SELECT :delivery_id, :event_id, :now
WHERE NOT EXISTS (SELECT 1 FROM deliveries WHERE delivery_id = :delivery_id)
ON CONFLICT DO NOTHING

-- name: echoes_of
SELECT e.transaction_id, e.event_id, (SELECT MAX(s.server_ts) FROM sightings AS s WHERE s.event_id = e.event_id) AS server_ts
FROM echoes AS e WHERE e.transaction_id IN (SELECT value FROM json_each(:deliveries))

-- name: acknowledge_delivery
UPDATE deliveries SET state = 'sent', event_id = :event_id, error = NULL, settled_at = :now
WHERE delivery_id = :delivery_id AND event_id IS NULL

-- name: revive_deliveries
UPDATE deliveries SET state = 'pending', error = NULL, settled_at = NULL
WHERE state = 'dropped' AND expired = 0 AND kind IN ('button', 'edit') AND question_id IN (
  SELECT q.question_id FROM questions AS q JOIN deliveries AS asked USING (delivery_id)
  WHERE q.delivery_id = :delivery_id AND asked.state = 'uncertain'
    AND (deliveries.kind = 'button') = (q.state IN ('posting', 'open')))

-- name: acknowledge_question
UPDATE questions SET event_id = :event_id WHERE delivery_id = :delivery_id AND event_id IS NULL

-- name: open_question
UPDATE questions SET event_id = :event_id, asked_ts = :asked_ts, opened_seq = :seq,
  state = CASE WHEN state = 'posting' THEN 'open' ELSE state END
WHERE question_id = :question_id

-- name: open_question_found
UPDATE questions SET opened_seq = COALESCE(opened_seq, (SELECT COALESCE(MAX(seq), 0) FROM sightings)),
  asked_ts = COALESCE(asked_ts, :asked_ts, recorded_at), compare = state IN ('posting', 'open'),
  state = CASE WHEN state = 'posting' THEN 'open' ELSE state END
WHERE delivery_id = :delivery_id

-- name: compare_questions_of_room
UPDATE questions SET compare = 1
WHERE agent = :agent AND room_id = :room_id AND state IN ('posting', 'open') AND event_id IS NOT NULL

-- name: questions_to_compare
SELECT question_id, room_id, event_id, part FROM questions WHERE agent = :agent AND compare = 1 AND event_id IS NOT NULL
ORDER BY seq

-- name: forget_sightings_of_unknown
DELETE FROM sightings WHERE event_id IN (SELECT v.event_id FROM json_each(:events)
  JOIN verdicts AS v ON v.event_id = value AND v.verdict = 'unknown_question')

-- name: forget_unknown
DELETE FROM verdicts WHERE verdict = 'unknown_question' AND event_id IN (SELECT value FROM json_each(:events))

-- name: compared
UPDATE questions SET compare = 0 WHERE question_id = :question_id

-- name: record_utterance
INSERT INTO utterances (agent, room_id, thread_id, event_id, turn_id, seq)
VALUES (:agent, :room_id, COALESCE(:thread_id, ''), :event_id, :turn_id, :seq)
ON CONFLICT (room_id, agent, thread_id) DO UPDATE
  SET event_id = excluded.event_id, turn_id = excluded.turn_id, seq = excluded.seq

-- name: record_verdict
INSERT INTO verdicts (event_id, question_id, sender, verdict, reason, decided_at)
VALUES (:event_id, :question_id, :sender, :verdict, :reason, :now)

-- name: record_selection
INSERT INTO selections (question_id, source_event_id, turn_id, answered_by, answered_by_name, number, key, answered_ts)
VALUES (:question_id, :source_event_id, :turn_id, :answered_by, :answered_by_name, :number, :key, :answered_ts)

-- name: close_question
UPDATE questions SET state = :state, close_reason = :reason, closed_seq = :seq, closed_at = :now, compare = 0
WHERE question_id = :question_id AND state IN ('posting', 'open')

-- name: drop_unsent_buttons
UPDATE deliveries SET state = 'dropped', error = 'the question was closed first', settled_at = :now
WHERE question_id = :question_id AND kind = 'button' AND state = 'pending'

-- name: buttons_out
SELECT d.delivery_id, d.agent, d.room_id, d.question_id FROM deliveries AS d JOIN questions AS q USING (question_id)
WHERE d.question_id IN (SELECT value FROM json_each(:questions)) AND d.kind = 'button' AND d.state IN ('attempted', 'sent')
  AND NOT EXISTS (SELECT 1 FROM accounts AS a WHERE a.agent = d.agent AND a.limited_at >= q.recorded_at)
ORDER BY d.seq

-- name: record_said
INSERT INTO messages (room_id, thread_id, event_id, sender, text, said_at)
VALUES (:room_id, :thread_id, :event_id, :sender, :text, :now)
ON CONFLICT DO NOTHING

-- name: record_reply_part
INSERT INTO messages (room_id, thread_id, delivery_id, sender, text, said_at)
VALUES (:room_id, :thread_id, :delivery_id, :sender, :text, :now)
ON CONFLICT DO NOTHING

-- name: record_turn
INSERT INTO turns
  (turn_id, agent, kind, room_id, thread_id, source_event_id, sender, sender_name, text, selection, queued_at)
VALUES
  (:turn_id, :agent, :kind, :room_id, :thread_id, :source_event_id, :sender, :sender_name, :text, :selection, :now)
ON CONFLICT DO NOTHING

-- name: record_delivery
INSERT INTO deliveries
  (delivery_id, agent, room_id, kind, rank, turn_id, question_id, target_id, after_turn, content, recorded_at)
VALUES
  (:delivery_id, :agent, :room_id, :kind, :rank, :turn_id, :question_id, :target_id, :after_turn, :content, :now)
ON CONFLICT DO NOTHING

-- name: record_question
INSERT INTO questions
  (question_id, agent, room_id, thread_id, turn_id, delivery_id, requester, text, part, state, recorded_at)
VALUES
  (:question_id, :agent, :room_id, :thread_id, :turn_id, :delivery_id, :requester, :text, :part, 'posting', :now)

-- name: questions_asked_anew
SELECT question_id, delivery_id, agent, room_id, part, state FROM questions
WHERE agent = :agent AND room_id = :room_id AND thread_id IS :thread_id AND text = :text AND state IN ('posting', 'open')

-- name: record_problem
INSERT INTO problems (agent, room_id, thread_id, turn_id, code, message)
VALUES (:agent, :room_id, :thread_id, :turn_id, :code, :message)

-- name: tell_problems
UPDATE problems SET told_in = :turn_id
WHERE agent = :agent AND room_id = :room_id AND thread_id IS :thread_id AND told_in IS NULL

-- name: untell_problems
UPDATE problems SET told_in = NULL WHERE told_in = :turn_id

-- name: problems_told
SELECT code, message FROM problems WHERE told_in = :turn_id ORDER BY problem_id

-- name: heads_of_threads
SELECT t.turn_id, t.agent, t.kind, t.room_id, t.thread_id, t.source_event_id, t.sender, t.sender_name, t.text,
  t.selection, t.failures, t.due_at
FROM turns AS t
WHERE t.agent = :agent AND t.state = 'queued' AND NOT EXISTS (
  SELECT 1 FROM turns AS earlier WHERE earlier.agent = t.agent AND earlier.state = 'queued'
    AND earlier.room_id = t.room_id AND earlier.thread_id IS t.thread_id AND earlier.seq < t.seq)
ORDER BY t.seq

-- name: end_turn
UPDATE turns SET state = 'done', reply = :reply, error = NULL, ended_at = :now
WHERE turn_id = :turn_id AND state = 'queued'

-- name: delay_turn
UPDATE turns SET failures = failures + 1, error = :error, due_at = :due_at WHERE turn_id = :turn_id AND state = 'queued'

-- name: park_turn
UPDATE turns SET state = 'parked', failures = failures + 1, error = :error, ended_at = :now
WHERE turn_id = :turn_id AND state = 'queued'

-- name: requeue_parked_turns
UPDATE turns SET state = 'queued', due_at = 0, ended_at = NULL WHERE agent = :agent AND state = 'parked'

-- name: requeue_turn
UPDATE turns SET state = 'queued', due_at = 0, ended_at = NULL WHERE turn_id = :turn_id AND state = 'parked'

-- name: history_of_thread
SELECT m.message_id, m.sender, m.text FROM messages AS m LEFT JOIN deliveries AS d USING (delivery_id)
WHERE m.room_id = :room_id AND m.thread_id IS :thread_id
  AND (m.event_id IS NULL OR m.message_id < (SELECT message_id FROM messages WHERE event_id = :source_event_id))
  AND (d.state IS NULL OR d.state NOT IN ('refused', 'dropped'))
UNION ALL
SELECT root.message_id, root.sender, root.text FROM messages AS root
WHERE root.event_id = :thread_id AND root.room_id = :room_id AND root.thread_id IS NOT :thread_id
  AND root.message_id < (SELECT message_id FROM messages WHERE event_id = :source_event_id)
ORDER BY 1 DESC LIMIT :limit

-- name: open_questions_of_thread
SELECT question_id, event_id, text FROM questions
WHERE agent = :agent AND room_id = :room_id AND thread_id IS :thread_id AND state IN ('posting', 'open')
  AND event_id IS NOT NULL ORDER BY seq DESC LIMIT :limit

-- name: next_delivery
SELECT d.delivery_id, d.agent, d.room_id, d.kind, d.content, d.question_id, d.target_id, d.state, d.attempted_since,
  target.event_id AS target_event, target.state AS target_state
FROM deliveries AS d LEFT JOIN deliveries AS target ON target.delivery_id = d.target_id
WHERE d.agent = :agent AND d.state IN ('pending', 'attempted') AND d.rank <= :most_rank
  AND d.room_id NOT IN (SELECT value FROM json_each(:set_aside))
  AND (d.question_id IS NULL OR d.question_id NOT IN (SELECT value FROM json_each(:set_aside)))
  AND (d.target_id IS NULL OR target.state NOT IN ('pending', 'attempted'))
  AND (d.after_turn IS NULL OR NOT EXISTS (SELECT 1 FROM turns WHERE turn_id = d.after_turn AND state = 'queued'))
  AND NOT EXISTS (SELECT 1 FROM memberships AS m
    WHERE m.agent = d.agent AND m.room_id = d.room_id AND m.state = 'accepted')
ORDER BY d.rank, d.seq LIMIT 1

-- name: attempt_delivery
UPDATE deliveries SET state = 'attempted', attempted_since =
  COALESCE(attempted_since, (SELECT next_batch FROM accounts AS a WHERE a.agent = deliveries.agent))
WHERE delivery_id = :delivery_id

-- name: attempt_unsettled_deliveries
UPDATE deliveries SET state = 'attempted', attempted_since =
  COALESCE(attempted_since, (SELECT next_batch FROM accounts AS a WHERE a.agent = deliveries.agent))
WHERE state = 'pending'

-- name: sent_since
SELECT settled_at, kind FROM deliveries
WHERE expired IN (0, 1) AND settled_at > :time AND agent = :agent AND state = 'sent' ORDER BY settled_at

-- name: release_delivery
UPDATE deliveries SET state = 'pending', attempted_since = NULL
WHERE delivery_id = :delivery_id AND state = 'attempted'

-- name: drop_redactions
UPDATE deliveries SET state = 'dropped', error = 'the account was limited, and the buttons do no harm', settled_at = :now
WHERE agent = :agent AND kind = 'redaction' AND state = 'pending'

-- name: acknowledged_events
SELECT event_id FROM deliveries WHERE event_id IN (SELECT value FROM json_each(:events))

-- name: settle_delivery
UPDATE deliveries SET state = :state, error = :error, settled_at = :now
WHERE delivery_id = :delivery_id AND state IN ('pending', 'attempted')

-- name: question_of_delivery
SELECT question_id, agent, room_id, thread_id, turn_id, state FROM questions WHERE delivery_id = :delivery_id

-- name: question_of_button
SELECT q.question_id, q.delivery_id, q.agent, q.room_id, q.part, q.state FROM deliveries AS d JOIN questions AS q USING (question_id)
WHERE d.delivery_id = :delivery_id AND d.kind = 'button'

-- name: forget_fact
DELETE FROM facts WHERE name = :name

-- name: report_agents
SELECT a.agent, a.user_id,
  (SELECT json_group_object(state, number) FROM
    (SELECT state, COUNT(*) AS number FROM turns WHERE turns.agent = a.agent GROUP BY state)) AS turns,
  (SELECT json_group_object(state, number) FROM
    (SELECT state, COUNT(*) AS number FROM questions WHERE questions.agent = a.agent GROUP BY state)) AS questions,
  (SELECT json_group_object(state, number) FROM
    (SELECT state, COUNT(*) AS number FROM deliveries WHERE deliveries.agent = a.agent GROUP BY state)) AS deliveries
FROM accounts AS a ORDER BY a.agent

-- name: report_parked
SELECT turn_id, agent, room_id, source_event_id AS event_id, failures, error FROM turns WHERE state = 'parked' ORDER BY seq

-- name: report_refused
SELECT delivery_id, agent, room_id, kind, error FROM deliveries WHERE state = 'refused' ORDER BY seq DESC LIMIT 20

-- name: report_uncertain
SELECT delivery_id, agent, room_id, kind, error FROM deliveries WHERE state = 'uncertain' ORDER BY seq DESC LIMIT 20

-- name: report_behind
SELECT agent, room_id FROM rooms_behind ORDER BY agent, room_id

-- name: report_unread
SELECT agent, room_id, event_id, sender FROM unread ORDER BY seq DESC LIMIT 20

-- name: report_condition
SELECT a.agent, a.user_id, a.wait_until, a.limited_at, a.budget,
  (SELECT COUNT(*) FROM turns AS t WHERE t.agent = a.agent AND t.state = 'parked') AS parked,
  (SELECT COUNT(*) FROM deliveries AS d WHERE d.agent = a.agent AND d.state = 'refused' AND d.settled_at >= :since) AS refused,
  (SELECT COUNT(*) FROM deliveries AS d WHERE d.agent = a.agent AND d.state = 'uncertain' AND d.settled_at >= :since)
    AS uncertain
FROM accounts AS a ORDER BY a.agent

-- name: report_questions
SELECT q.seq, q.question_id, q.agent, q.room_id, q.thread_id, q.event_id, q.state, q.close_reason, q.text AS question_text,
  q.requester, q.turn_id, q.revision, q.asked_ts, q.part, q.expired, s.number, s.key, s.answered_by, s.answered_ts,
  s.source_event_id, s.turn_id AS selection_turn_id
FROM questions AS q LEFT JOIN selections AS s USING (question_id)
WHERE (:question_id IS NULL OR q.question_id = :question_id) AND q.seq > :after
ORDER BY q.seq LIMIT :most

-- name: report_turn
SELECT turn_id, agent, kind, room_id, thread_id, source_event_id, sender, text, selection, state, failures, error, reply,
  queued_at, ended_at, expired
FROM turns WHERE turn_id = :turn_id

-- name: report_ids
SELECT (SELECT question_id FROM questions WHERE question_id = :id OR event_id = :id) AS question_id,
  (SELECT turn_id FROM turns WHERE turn_id = :id OR source_event_id = :id ORDER BY seq LIMIT 1) AS turn_id

-- name: report_deliveries
SELECT delivery_id, kind, state, event_id, error FROM deliveries
WHERE question_id = :question_id OR turn_id = :turn_id ORDER BY seq

-- name: report_verdicts
SELECT event_id, sender, verdict, reason FROM verdicts WHERE question_id = :question_id ORDER BY decided_at

-- name: report_verdict
SELECT event_id, verdict, reason, question_id FROM verdicts WHERE event_id = :event_id

-- name: report_event
SELECT
  (SELECT kind || ' of ' || agent FROM deliveries WHERE event_id = :event_id) AS sent,
  (SELECT question_id FROM deliveries WHERE event_id = :event_id) AS question_id,
  (SELECT group_concat(agent || ' (' || turn_id || ', ' || state || ')', ', ') FROM turns
    WHERE source_event_id = :event_id) AS turns,
  (SELECT group_concat(agent, ', ') FROM unread WHERE event_id = :event_id) AS unread_by,
  (SELECT group_concat(agent, ', ') FROM sightings WHERE event_id = :event_id) AS seen_by,
  (SELECT MAX(judged) FROM sightings WHERE event_id = :event_id) AS judged

-- name: turns_to_empty
SELECT turn_id AS id FROM turns WHERE state = 'done' AND expired = 0 AND ended_at < :before ORDER BY ended_at LIMIT :most

-- name: forget_problems_told
DELETE FROM problems WHERE told_in IN (SELECT value FROM json_each(:chosen))

-- name: empty_turns
UPDATE turns SET text = '', sender_name = '', selection = NULL, reply = NULL, error = NULL, expired = 1
WHERE turn_id IN (SELECT value FROM json_each(:chosen))

-- name: questions_to_empty
SELECT question_id AS id FROM questions
WHERE closed_at IS NOT NULL AND expired = 0 AND closed_at < :before ORDER BY closed_at LIMIT :most

-- name: empty_selections
UPDATE selections SET answered_by_name = '' WHERE question_id IN (SELECT value FROM json_each(:chosen))

-- name: empty_questions
UPDATE questions SET text = '', part = :empty_part, expired = 1
WHERE question_id IN (SELECT value FROM json_each(:chosen))

-- name: deliveries_to_empty
SELECT delivery_id AS id FROM deliveries
WHERE settled_at IS NOT NULL AND expired = 0 AND settled_at < :before ORDER BY settled_at LIMIT :most

-- name: empty_deliveries
UPDATE deliveries SET content = '{}', expired = 1 WHERE delivery_id IN (SELECT value FROM json_each(:chosen))

-- name: messages_to_forget
SELECT m.message_id AS id FROM messages AS m
WHERE m.said_at < :before
  AND NOT EXISTS (SELECT 1 FROM turns AS t WHERE t.source_event_id = m.event_id AND t.state <> 'done')
ORDER BY m.said_at LIMIT :most

-- name: forget_messages
DELETE FROM messages WHERE message_id IN (SELECT value FROM json_each(:chosen))

-- name: questions_to_forget
SELECT q.question_id AS id FROM questions AS q
WHERE q.closed_at IS NOT NULL AND q.expired = 1 AND q.closed_at < :before
  AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.question_id = q.question_id AND d.settled_at IS NULL)
ORDER BY q.closed_at LIMIT :most

-- name: forget_selections
DELETE FROM selections WHERE question_id IN (SELECT value FROM json_each(:chosen))

-- name: forget_questions
DELETE FROM questions WHERE question_id IN (SELECT value FROM json_each(:chosen))

-- name: turns_to_forget
SELECT t.turn_id AS id FROM turns AS t
WHERE t.state = 'done' AND t.expired = 1 AND t.ended_at < :before
  AND NOT EXISTS (SELECT 1 FROM questions AS q WHERE q.turn_id = t.turn_id)
  AND NOT EXISTS (SELECT 1 FROM selections AS s WHERE s.turn_id = t.turn_id)
  AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.turn_id = t.turn_id AND d.settled_at IS NULL)
ORDER BY t.ended_at LIMIT :most

-- name: forget_problems
DELETE FROM problems WHERE turn_id IN (SELECT value FROM json_each(:chosen))

-- name: forget_turns
DELETE FROM turns WHERE turn_id IN (SELECT value FROM json_each(:chosen))

-- name: deliveries_to_forget
SELECT d.delivery_id AS id FROM deliveries AS d
WHERE d.settled_at IS NOT NULL AND d.expired = 1 AND d.settled_at < :before
  AND NOT EXISTS (SELECT 1 FROM questions AS q WHERE q.question_id = d.question_id)
  AND NOT EXISTS (SELECT 1 FROM turns AS t WHERE t.turn_id = d.turn_id)
ORDER BY d.settled_at LIMIT :most

-- name: forget_deliveries
DELETE FROM deliveries WHERE delivery_id IN (SELECT value FROM json_each(:chosen))

-- name: verdicts_to_forget
SELECT v.event_id AS id FROM verdicts AS v
WHERE v.decided_at < :before
  AND NOT EXISTS (SELECT 1 FROM questions AS q WHERE q.question_id = v.question_id AND q.closed_at IS NULL)
ORDER BY v.decided_at LIMIT :most

-- name: forget_verdicts
DELETE FROM verdicts WHERE event_id IN (SELECT value FROM json_each(:chosen))

-- name: unread_to_forget
SELECT event_id AS id FROM unread WHERE seen_at < :before ORDER BY seen_at LIMIT :most

-- name: forget_old_unread
DELETE FROM unread WHERE event_id IN (SELECT value FROM json_each(:chosen))

-- name: echoes_to_forget
SELECT transaction_id AS id FROM echoes WHERE seen_at < :before ORDER BY seen_at LIMIT :most

-- name: forget_echoes
DELETE FROM echoes WHERE transaction_id IN (SELECT value FROM json_each(:chosen))

-- name: newest_server_time
SELECT MAX(server_ts) AS server_ts FROM (SELECT server_ts FROM sightings ORDER BY seq DESC LIMIT :most)

-- name: sightings_in_order
SELECT seq, seen_at FROM sightings WHERE seq > :after AND seq < (SELECT MAX(seq) FROM sightings) ORDER BY seq LIMIT :most

-- name: forget_sightings
DELETE FROM sightings WHERE seq > :after AND seq <= :upto
  AND NOT EXISTS (SELECT 1 FROM verdicts AS v WHERE v.event_id = sightings.event_id)

-- name: forget_utterances
DELETE FROM utterances WHERE (room_id, agent, thread_id) IN (SELECT u.room_id, u.agent, u.thread_id FROM utterances AS u
  WHERE u.seq <= :upto AND NOT EXISTS (SELECT 1 FROM questions AS q
    WHERE q.room_id = u.room_id AND q.agent = u.agent AND q.state IN ('posting', 'open'))
  ORDER BY u.seq LIMIT :most)

-- name: record_fact
INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value
