"""Reads answers of the scripted model server with the vendors' own clients.

    read_streams.py BASE_URL PROMPT...

Asks each prompt of the server at BASE_URL (without /v1) in every protocol, streamed and not, and prints one JSON list
with an entry per answer: blocks, usage and stop reason as the client understood them, or the error it raised.
"""

import base64
import json
import sys

import anthropic
import openai
from google import genai

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
TOOLS = ["read", "edit"]


def ask_anthropic(client, prompt, stream):
    tools = [{"name": name, "description": name, "input_schema": SCHEMA} for name in TOOLS]
    messages = [{"role": "user", "content": prompt}]
    request = {"model": "mock", "max_tokens": 1000, "messages": messages, "tools": tools}
    if stream:
        with client.messages.stream(**request) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**request)
    wanted = {
        "text": ["type", "text"],
        "thinking": ["type", "thinking", "signature"],
        "redacted_thinking": ["type", "data"],
        "tool_use": ["type", "id", "name", "input"],
    }
    blocks = [{key: getattr(block, key) for key in wanted[block.type]} for block in message.content]
    usage = message.usage
    return {
        "blocks": blocks,
        "usage": {
            "input": usage.input_tokens,
            "cache_read": usage.cache_read_input_tokens,
            "output": usage.output_tokens,
        },
        "reasoning": usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0,
        "stop_reason": message.stop_reason,
    }


def ask_openai(client, prompt, stream):
    tools = [
        {"type": "function", "function": {"name": name, "parameters": SCHEMA, "strict": True}} for name in TOOLS
    ]
    request = {"model": "mock", "messages": [{"role": "user", "content": prompt}], "tools": tools}
    if stream:
        with client.chat.completions.stream(stream_options={"include_usage": True}, **request) as events:
            completion = events.get_final_completion()
    else:
        completion = client.chat.completions.create(**request)
    choice = completion.choices[0]
    blocks = []
    # No field of the protocol, but what the compatible vendors send.
    thinking = (choice.message.model_extra or {}).get("reasoning_content")
    if thinking:
        blocks.append({"type": "thinking", "thinking": thinking})
    if choice.message.content:
        blocks.append({"type": "text", "text": choice.message.content})
    for call in choice.message.tool_calls or []:
        arguments = json.loads(call.function.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.function.name, "input": arguments})
    usage = completion.usage
    cached = usage.prompt_tokens_details.cached_tokens
    return {
        "blocks": blocks,
        "usage": {"input": usage.prompt_tokens - cached, "cache_read": cached, "output": usage.completion_tokens},
        "reasoning": usage.completion_tokens_details.reasoning_tokens,
        "stop_reason": choice.finish_reason,
    }


def ask_responses(client, prompt, stream):
    tools = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": True} for name in TOOLS]
    request = {"model": "mock", "input": prompt, "tools": tools, "store": False}
    response = stream_response(client, request) if stream else client.responses.create(**request)
    blocks = []
    for item in response.output:
        if item.type == "reasoning" and item.summary:
            text = "".join(part.text for part in item.summary)
            blocks.append({"type": "thinking", "thinking": text, "signature": item.encrypted_content})
        elif item.type == "reasoning":
            blocks.append({"type": "redacted_thinking", "data": item.encrypted_content})
        elif item.type == "message":
            blocks += [{"type": "text", "text": part.text} for part in item.content]
        else:
            arguments = json.loads(item.arguments)
            blocks.append({"type": "tool_use", "id": item.call_id, "name": item.name, "input": arguments})
    usage = response.usage
    cached = usage.input_tokens_details.cached_tokens
    return {
        "blocks": blocks,
        "usage": {"input": usage.input_tokens - cached, "cache_read": cached, "output": usage.output_tokens},
        "reasoning": usage.output_tokens_details.reasoning_tokens,
        "stop_reason": response.status,
    }


def stream_response(client, request):
    """The response that a stream ends with, once its pieces have shown to be the same."""
    pieces, whole, response = {}, {}, None
    with client.responses.stream(**request) as events:
        for number, event in enumerate(events):
            if event.type == "error":
                raise openai.APIError(event.message, request=None, body=None)
            assert event.sequence_number == number, event
            if event.type.endswith(".delta"):
                pieces[event.item_id] = pieces.get(event.item_id, "") + event.delta
            elif event.type == "response.output_item.done":
                item = event.item
                text = {"message": "content", "reasoning": "summary"}.get(item.type)
                whole[item.id] = "".join(part.text for part in getattr(item, text)) if text else item.arguments
            elif event.type in ("response.completed", "response.incomplete"):
                response = event.response
    assert pieces == {key: text for key, text in whole.items() if text}, (pieces, whole)
    return response


def ask_gemini(client, prompt, stream):
    functions = [{"name": name, "description": name, "parameters_json_schema": SCHEMA} for name in TOOLS]
    config = {
        "tools": [{"function_declarations": functions}],
        "automatic_function_calling": {"disable": True},
    }
    request = {"model": "mock", "contents": prompt, "config": config}
    if stream:
        answers = list(client.models.generate_content_stream(**request))
    else:
        answers = [client.models.generate_content(**request)]
    blocks = []
    for answer in answers:
        for part in answer.candidates[0].content.parts:
            gather(blocks, part)
    usage = answers[-1].usage_metadata
    # Counts that are none are left out.
    cached, thoughts = usage.cached_content_token_count or 0, usage.thoughts_token_count or 0
    output = usage.candidates_token_count + thoughts
    assert usage.total_token_count == usage.prompt_token_count + output
    return {
        "blocks": blocks,
        "usage": {"input": usage.prompt_token_count - cached, "cache_read": cached, "output": output},
        "reasoning": thoughts,
        "stop_reason": answers[-1].candidates[0].finish_reason.value,
    }


def gather(blocks, part):
    """Adds a part to the blocks; pieces of a text come one after another."""
    if part.function_call:
        call = part.function_call
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.args}
        if part.thought_signature:
            block["signature"] = base64.b64encode(part.thought_signature).decode()
        blocks.append(block)
    elif part.text:
        kind = "thinking" if part.thought else "text"
        if not blocks or blocks[-1]["type"] != kind:
            blocks.append({"type": kind, kind: ""})
        blocks[-1][kind] += part.text


def answers(base, prompts):
    google = {"base_url": base, "api_version": "v1beta", "retry_options": {"attempts": 1}}
    bedrock = {"aws_access_key": "AKID", "aws_secret_key": "secret", "aws_region": "us-east-1"}
    vertex = {"region": "us-east1", "project_id": "test", "access_token": "test"}
    openais = openai.OpenAI(base_url=base + "/v1", api_key="test", max_retries=0)
    vendors = [
        ("anthropic", ask_anthropic, anthropic.Anthropic(base_url=base, api_key="test", max_retries=0)),
        ("bedrock", ask_anthropic, anthropic.AnthropicBedrock(base_url=base, max_retries=0, **bedrock)),
        ("vertex", ask_anthropic, anthropic.AnthropicVertex(base_url=base + "/v1", max_retries=0, **vertex)),
        ("openai", ask_openai, openais),
        ("responses", ask_responses, openais),
        ("gemini", ask_gemini, genai.Client(api_key="test", http_options=google)),
    ]
    for prompt in prompts:
        for protocol, ask, client in vendors:
            for stream in [True, False]:
                entry = {"prompt": prompt, "protocol": protocol, "stream": stream}
                try:
                    entry.update(ask(client, prompt, stream))
                except (anthropic.APIError, openai.APIError, genai.errors.APIError) as error:
                    entry["error"] = type(error).__name__
                    entry["message"] = error.message
                yield entry


if __name__ == "__main__":
    base, *prompts = sys.argv[1:]
    print(json.dumps(list(answers(base, prompts)), ensure_ascii=False))
