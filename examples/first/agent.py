QUESTION = """
```interactive
{"question": "Deploy now?", "options": [
  {"emoji": "🚀", "label": "Now", "value": "now"}, {"emoji": "🌙", "label": "Tonight", "value": "tonight"}]}
```"""


def reply(turn):
    if turn.kind == "selection":
        return f"Right, {turn.selection.selected_option.value}."
    return "Release 4.2 is ready." + QUESTION
