"""The form of Gradescope's results.json, as its manual gives it, to hold results against."""

from typing import Any

import jsonschema

VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}

# https://gradescope-autograders.readthedocs.io/en/latest/specs/, all fields; and of the formats plain text alone.
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["score", "output", "stdout_visibility"],
    "properties": {
        "score": {"type": "number", "minimum": 0},
        "execution_time": {"type": "number", "minimum": 0},
        "output": {"type": "string", "minLength": 1},
        "output_format": {"const": "text"},
        "test_output_format": {"const": "text"},
        "test_name_format": {"const": "text"},
        "visibility": VISIBILITY,
        "stdout_visibility": {"const": "hidden"},
        "extra_data": {"type": "object"},
        "leaderboard": {"type": "array"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "status", "score", "max_score", "output", "output_format", "visibility"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "name_format": {"const": "text"},
                    "number": {"type": "string"},
                    "status": {"enum": ["passed", "failed"]},
                    "score": {"type": "number", "minimum": 0},
                    "max_score": {"type": "number", "exclusiveMinimum": 0},
                    "output": {"type": "string"},
                    "output_format": {"const": "text"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": VISIBILITY,
                    "extra_data": {"type": "object"},
                },
            },
        },
    },
}


def valid(content: dict[str, Any]) -> dict[str, Any]:
    jsonschema.validate(content, SCHEMA)
    assert all(test["score"] <= test["max_score"] for test in content.get("tests", ()))
    return content
