"""Every way in which a translation differs from what was asked or answered; docs/translation.md is made from it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loss:
    """One row. `words` end the sentence that begins with the name at fault. `refused`: a 400, not a warning."""

    words: str
    meaning: str
    refused: bool = False


LOSSES: dict[str, Loss] = {
    "field_unknown": Loss(
        "is not known to this target's format and was left out",
        "A field that only the caller's dialect knows, of the request or of any object in it; and its betas.",
    ),
    "field_unsupported": Loss(
        "is not supported by this target and was left out",
        "A setting the target's dialect has no counterpart for.",
    ),
    "value_changed": Loss(
        "was changed to the nearest that this target takes",
        "A value outside of what the target takes: a temperature above 1, an effort that it does not know.",
    ),
    "thinking_dropped": Loss(
        "is not sealed for this target and was left out",
        "Reasoning of another provider or account, or without its signature, in the history.",
    ),
    "seal_removed": Loss(
        "is sealed for another target: its seal was left out, and its words were sent as open reasoning",
        "Reasoning of another provider or account whose words can be read, at a target that takes open reasoning.",
    ),
    "thinking_off": Loss(
        "thinking was switched off for this call: the sealed reasoning of an earlier turn is not known any more",
        "A tool result whose call came with sealed reasoning that neither the caller nor the gateway has.",
    ),
    "seal_missing": Loss(
        "come without the sealed reasoning that this target gave or wants; they were marked as made elsewhere",
        "Tool calls in the history of another model, or whose signature is lost, at Gemini 3 and later.",
    ),
    "cache_dropped": Loss(
        "cannot be marked for caching at this target; the mark was left out",
        "A cache marker at a place, or of a number, that the target does not take.",
    ),
    "item_dropped": Loss(
        "is an item of another provider's own tools and was left out",
        "A tool that the provider itself runs, its call or its result, at a target of another dialect.",
    ),
    "item_told": Loss(
        "is a kind of content that only another format has; what it holds was sent as text and pictures",
        "Search results, and documents of several parts, of a caller of Messages at another target.",
    ),
    "file_told": Loss(
        "is a document of plain text, which this target takes no files of; it was sent as text",
        "Documents of plain text, at targets whose files are PDFs or that take none.",
    ),
    "part_unsupported": Loss(
        "is a kind of content that this target does not take",
        "A picture, sound, file or unknown part for a target that cannot take it.",
        refused=True,
    ),
    "file_foreign": Loss(
        "is a file that another provider keeps, which this target cannot read",
        "The id of an uploaded file, at a target of another provider.",
        refused=True,
    ),
    "address_foreign": Loss(
        "lies in a store that this target does not read",
        "An address that begins with gs://, at Gemini's own API; Vertex reads it.",
        refused=True,
    ),
    "tool_unsupported": Loss(
        "is a kind of tool that this target does not take",
        "A tool that another provider runs, where `tool_choice` insists on it: without the choice it is left out.",
        refused=True,
    ),
    "grammar_hinted": Loss(
        "takes text of a grammar, which this target cannot enforce; it was told to the model",
        "A custom tool with a grammar at a target that knows only functions: it takes one text, `input`.",
    ),
    "choice_unknown": Loss(
        "names a tool that is not offered",
        "A choice of a tool that the request does not define.",
        refused=True,
    ),
    "choice_empty": Loss(
        "asks for a call, but no tools are offered; it was left out",
        "A choice of tools in a request without any.",
    ),
    "arguments_invalid": Loss(
        "holds arguments that are no JSON object, which this target needs",
        "A tool call in the history whose arguments were cut off or broken.",
        refused=True,
    ),
    "arguments_cut": Loss(
        "were cut off before they were a JSON object; the call is told without any",
        "A tool call of an answer that ended inside of its arguments, for a caller of Messages.",
    ),
    "result_orphaned": Loss(
        "answers no tool call of the message before it",
        "A tool result without its call.",
        refused=True,
    ),
    "result_missing": Loss(
        "has no result in the history; an error result was put in its place",
        "A tool call without its result, at a target that wants every call answered.",
    ),
    "result_repeated": Loss(
        "answers a tool call that has its result already",
        "Two results of one tool call.",
        refused=True,
    ),
    "call_repeated": Loss(
        "has the id of another tool call of its turn",
        "Two tool calls of one turn with one id, whose results could not be told apart.",
        refused=True,
    ),
    "history_empty": Loss(
        "holds no message",
        "A request without any message.",
        refused=True,
    ),
    "text_filled": Loss(
        "is empty, which this target does not take; a placeholder was put in its place",
        "A message of the user without any content.",
    ),
    "user_added": Loss(
        "has no message of the user where this target needs one; a placeholder was put there",
        "A history that begins with the assistant, or that is nothing but system messages.",
    ),
    "reply_added": Loss(
        "follows results of tools, where this target wants words of the assistant; a short reply was put between",
        "A message behind results of tools that the assistant has not answered, at Mistral.",
    ),
    "prefill_ended": Loss(
        "ends with the assistant's words, which this target does not continue; it was asked to go on by the user",
        "A history that ends with the assistant, at a target without prefilled answers.",
    ),
    "fetching_off": Loss(
        "is given by its URL, and this target takes only data: the gateway does not fetch it, send it as base64",
        "Pictures and files by URL, at a target that takes only data.",
        refused=True,
    ),
    "state_unknown": Loss(
        "sealed reasoning of earlier turns could not be looked up: the store did not answer",
        "Opaque state that the gateway keeps for callers, while its store is down.",
    ),
    "form_by_call": Loss(
        "is asked for as what a tool is called with: this target follows the schema then, but is not held to it",
        "A schema at models without structured output (older Claude, Nova, DeepSeek): a tool of it must be called.",
    ),
    "form_excluded": Loss(
        "is had of this target by a call that it must make, which goes with no other tools and no thinking",
        "JSON beside tools or thinking, at a target that has to be made call a tool for it.",
        refused=True,
    ),
    "form_unsupported": Loss(
        "is a form of answers that this target cannot be held to",
        "JSON at a target that can neither be asked for it nor be made call a tool; a schema of no object.",
        refused=True,
    ),
    "store_off": Loss(
        "nothing is stored; the answer is given once",
        "`store` true of Responses, at every target.",
    ),
    "answer_part_dropped": Loss(
        "a part of the answer cannot be told in this format and was left out",
        "Sounds, pictures and further choices of an answer, for a caller whose dialect has no place for them.",
    ),
    "schema_changed": Loss(
        "was rewritten to the part of JSON Schema that this target takes",
        "A tool's or format's schema with keywords that the target does not know.",
    ),
    "schema_unsupported": Loss(
        "cannot be written in the part of JSON Schema that this target takes",
        "A schema that would mean something else after rewriting.",
        refused=True,
    ),
    "stop_dropped": Loss(
        "holds sequences that this target does not take; the gateway ends the answer there itself",
        "Stop sequences that are blank, or more than the target takes.",
    ),
    "choices_unsupported": Loss(
        "asks for more answers than this format or target can give",
        "`n` above 1 where only one answer can be given.",
        refused=True,
    ),
    "system_moved": Loss(
        "stands between other messages, where this target takes none; it was sent as marked text of the user",
        "A system message in the middle of a history.",
    ),
    "citation_dropped": Loss(
        "citations cannot be told in this format and were left out",
        "Citations of an answer, for a caller whose dialect has no place for them.",
    ),
    "answer_item_dropped": Loss(
        "an item of the provider's own tools cannot be told in this format and was left out",
        "Calls and results of server tools in an answer, for a caller of another dialect.",
    ),
    "finish_changed": Loss(
        "the provider's reason for the end has no counterpart in this format",
        "Finish reasons such as `pause_turn` or Gemini's `MALFORMED_FUNCTION_CALL`, told by the nearest one.",
    ),
    "logprobs_dropped": Loss(
        "log probabilities cannot be told in this format and were left out",
        "Log probabilities of an answer for a caller whose dialect has no place for them.",
    ),
    "inputs_too_many": Loss(
        "is more than this target takes in one call",
        "A list of inputs longer than one call of the target may hold; the limit is named.",
        refused=True,
    ),
}
"""Every loss by its name. Add a row rather than losing something without one."""
