"""The turn's JSON, field by field as the contract has it (section 5)."""

import json

import pytest
from pydantic import JsonValue, ValidationError

from mindbridge.agents.turn import Turn
from tests.unit.sample_turn import selection, turn


def test_message_turn_is_the_contracts_json_with_its_fields_in_order() -> None:
    message = turn(
        sender={"user_id": "@alice:example.org", "display_name": "Älice 🚀"},
        history=[{"role": "user", "sender": "@alice:example.org", "text": "two\nlines"}],
        open_questions=[{"question_id": "question_0", "question_event_id": "$q", "question_text": "Tea?"}],
        problems=[{"code": "options_truncated", "message": "Only 5 of 7 options are shown."}],
    )

    assert message.model_dump_json() == (
        '{"version":1,"turn_id":"turn_1","attempt":1,"agent":"assistant","kind":"message","room_id":"!room",'
        '"thread_id":"$hello","event_id":"$hello",'
        '"sender":{"user_id":"@alice:example.org","display_name":"Älice 🚀"},"text":"hello","selection":null,'
        '"history":[{"role":"user","sender":"@alice:example.org","text":"two\\nlines"}],'
        '"open_questions":[{"question_id":"question_0","question_event_id":"$q","question_text":"Tea?"}],'
        '"problems":[{"code":"options_truncated","message":"Only 5 of 7 options are shown."}]}'
    )


def test_selection_turn_is_the_contracts_json_with_its_fields_in_order() -> None:
    answer = turn(kind="selection", event_id="$click", text="Alice chose 1.", thread_id=None, selection=selection())

    assert answer.model_dump_json() == (
        '{"version":1,"turn_id":"turn_1","attempt":1,"agent":"assistant","kind":"selection","room_id":"!room",'
        '"thread_id":null,"event_id":"$click","sender":{"user_id":"@alice:example.org","display_name":"Alice"},'
        '"text":"Alice chose 1.","selection":{"question_id":"question_1","question_event_id":"$question",'
        '"thread_id":"$hello","question_text":"What approach would you prefer?",'
        '"selected_option":{"number":1,"key":"🚀","label":"Fast and automated","value":"fast"},'
        '"source_event_id":"$click","answered_by":"@alice:example.org","revision":1,'
        '"asked_at":"2026-11-30T12:00:00Z","answered_at":"2026-11-30T12:00:09Z","older":false},'
        '"history":[],"open_questions":[],"problems":[]}'
    )


@pytest.mark.parametrize("value", [0, 1, False, True, "", "0", 2.5, [], [1, [False]], {}, {"a": None}, "🚀"], ids=repr)
def test_option_value_keeps_its_json_type(value: JsonValue) -> None:
    option = {"number": 1, "key": "1", "label": "One", "value": value}

    sent = json.loads(turn(selection=selection(selected_option=option)).model_dump_json())

    got = sent["selection"]["selected_option"]["value"]
    assert (type(got), got) == (type(value), value)


def test_role_and_instructions_are_there_for_python_and_not_in_the_json() -> None:
    message = turn(role="A pirate", instructions=("Be brief.",))

    assert (message.role, message.instructions) == ("A pirate", ("Be brief.",))
    assert json.loads(message.model_dump_json()).keys() == json.loads(turn().model_dump_json()).keys()


def test_json_reads_back_as_the_same_turn() -> None:
    answer = turn(kind="selection", selection=selection())

    assert Turn.model_validate_json(answer.model_dump_json()) == answer


def test_a_turn_can_not_be_changed() -> None:
    with pytest.raises(ValidationError):
        turn().text = "other"
