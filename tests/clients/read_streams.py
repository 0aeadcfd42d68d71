"""Reads answers of the scripted model server with the vendors' own clients.

    read_streams.py BASE_URL PROMPT...

Asks each prompt of the server at BASE_URL (without /v1) in both protocols, streamed and not, and prints one JSON list
with an entry per answer: blocks, usage and stop reason as the client understood them, or the error it raised.
"""

import json
import sys

import anthropic
import openai

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
        "stop_reason": choice.finish_reason,
    }


def answers(base, prompts):
    vendors = [
        ("anthropic", ask_anthropic, anthropic.Anthropic(base_url=base, api_key="test", max_retries=0)),
        ("openai", ask_openai, openai.OpenAI(base_url=base + "/v1", api_key="test", max_retries=0)),
    ]
    for prompt in prompts:
        for protocol, ask, client in vendors:
            for stream in [True, False]:
                entry = {"prompt": prompt, "protocol": protocol, "stream": stream}
                try:
                    entry.update(ask(client, prompt, stream))
                except (anthropic.APIError, openai.APIError) as error:
                    entry["error"] = type(error).__name__
                    entry["message"] = error.message
                yield entry


if __name__ == "__main__":
    base, *prompts = sys.argv[1:]
    print(json.dumps(list(answers(base, prompts)), ensure_ascii=False))
