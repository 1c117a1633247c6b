"""One row per kind of provider."""

from gateway.providers.base import Provider, Quirks

_CHAT = frozenset({"chat", "models"})
_TEXT = _CHAT | {"completions"}
_EMBED = _CHAT | {"embeddings"}
_LOCAL = _TEXT | {"embeddings"}
_OBJECTS = frozenset({"files", "batches"})
_RESPONSES = frozenset({"responses"})
_OPENAI = _LOCAL | _OBJECTS | _RESPONSES | {"moderations", "images", "audio"}
_EVERYTHING = _OPENAI | {"rerank"}

_OLD_LIMIT = {"max_completion_tokens": "max_tokens"}
_OPENAI_ONLY = frozenset(
    {
        "audio",
        "function_call",
        "functions",
        "logit_bias",
        "modalities",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
        "verbosity",
        "web_search_options",
    }
)
_NOT_AT_COHERE = frozenset(
    {
        "audio",
        "logit_bias",
        "metadata",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "service_tier",
        "store",
        "top_logprobs",
    }
)

_ROWS = (
    Provider(
        kind="openai",
        summary="OpenAI",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        endpoints=_OPENAI,
    ),
    Provider(
        kind="anthropic",
        summary="Anthropic",
        base_url="https://api.anthropic.com/v1",
        key_variable="ANTHROPIC_API_KEY",
        endpoints=frozenset({"messages", "count_tokens", "models"}),
        auth="x-api-key",
        dialect="anthropic_messages",
        headers=((b"anthropic-version", b"2023-06-01"),),
    ),
    Provider(
        kind="azure",
        summary="Azure OpenAI: deployments of a resource, or its /openai/v1 and /models addresses",
        base_url="",
        key_variable="AZURE_OPENAI_API_KEY",
        key_variables=("AZURE_API_KEY",),
        endpoints=_OPENAI,
        auth="api-key",
        paths="azure",
    ),
    Provider(
        kind="openai_compatible",
        summary="Any server that speaks OpenAI's chat completions; key optional",
        base_url="",
        key_variable="",
        endpoints=_EVERYTHING,
        quirks=Quirks(done_required=False),
        needs_key=False,
    ),
    Provider(
        kind="groq",
        summary="Groq",
        base_url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        endpoints=_CHAT | _OBJECTS | _RESPONSES | {"audio"},
        quirks=Quirks(
            refuse=frozenset({"logprobs", "logit_bias", "top_logprobs"}), usage_at="finish"
        ),
    ),
    Provider(
        kind="mistral",
        summary="Mistral",
        base_url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        endpoints=_EMBED | _OBJECTS | {"moderations", "audio"},
        quirks=Quirks(
            rename={**_OLD_LIMIT, "seed": "random_seed", "dimensions": "output_dimension"},
            refuse=_OPENAI_ONLY | {"stream_options"},
            ask_usage=False,
            usage_at="finish",
            error_shape="detail",
        ),
    ),
    Provider(
        kind="openrouter",
        summary="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        endpoints=_TEXT | {"embeddings"},
        quirks=Quirks(usage_at="finish"),
    ),
    Provider(
        kind="xai",
        summary="xAI",
        base_url="https://api.x.ai/v1",
        key_variable="XAI_API_KEY",
        endpoints=_TEXT | _RESPONSES | {"images"},
        quirks=Quirks(refuse=frozenset({"logit_bias"}), reasoning="outside", error_shape="flat"),
    ),
    Provider(
        kind="deepseek",
        summary="DeepSeek",
        base_url="https://api.deepseek.com",
        key_variable="DEEPSEEK_API_KEY",
        endpoints=_CHAT,
        quirks=Quirks(rename=_OLD_LIMIT, usage_at="finish"),
    ),
    Provider(
        kind="together",
        summary="Together AI",
        base_url="https://api.together.xyz/v1",
        key_variable="TOGETHER_API_KEY",
        endpoints=_TEXT | {"embeddings", "images", "audio", "rerank"},
        quirks=Quirks(rename=_OLD_LIMIT, usage_at="finish"),
    ),
    Provider(
        kind="fireworks",
        summary="Fireworks AI",
        base_url="https://api.fireworks.ai/inference/v1",
        key_variable="FIREWORKS_API_KEY",
        endpoints=_TEXT | {"embeddings", "rerank"},
        quirks=Quirks(rename=_OLD_LIMIT, usage_at="finish"),
    ),
    Provider(
        kind="perplexity",
        summary="Perplexity",
        base_url="https://api.perplexity.ai",
        key_variable="PERPLEXITY_API_KEY",
        key_variables=("PPLX_API_KEY",),
        endpoints=frozenset({"chat"}),
        quirks=Quirks(
            rename=_OLD_LIMIT,
            refuse=frozenset({"stream_options"}),
            ask_usage=False,
            usage_at="every",
            done_required=False,
        ),
    ),
    Provider(
        kind="cerebras",
        summary="Cerebras",
        base_url="https://api.cerebras.ai/v1",
        key_variable="CEREBRAS_API_KEY",
        endpoints=_TEXT,
        quirks=Quirks(refuse=frozenset({"frequency_penalty", "logit_bias", "presence_penalty"})),
    ),
    Provider(
        kind="huggingface",
        summary="Hugging Face's router to many providers",
        base_url="https://router.huggingface.co/v1",
        key_variable="HF_TOKEN",
        key_variables=("HUGGINGFACE_API_KEY",),
        endpoints=_CHAT,
        quirks=Quirks(done_required=False),
    ),
    Provider(
        kind="moonshot",
        summary="Moonshot AI",
        base_url="https://api.moonshot.ai/v1",
        key_variable="MOONSHOT_API_KEY",
        endpoints=_CHAT | _OBJECTS,
    ),
    Provider(
        kind="zai",
        summary="Z.ai",
        base_url="https://api.z.ai/api/paas/v4",
        key_variable="ZAI_API_KEY",
        endpoints=_EMBED,
        quirks=Quirks(rename=_OLD_LIMIT, usage_at="finish"),
    ),
    Provider(
        kind="alibaba",
        summary="Alibaba Cloud Model Studio",
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_variable="DASHSCOPE_API_KEY",
        endpoints=_TEXT | _OBJECTS | {"embeddings"},
        quirks=Quirks(rename=_OLD_LIMIT),
    ),
    Provider(
        kind="nvidia",
        summary="NVIDIA NIM",
        base_url="https://integrate.api.nvidia.com/v1",
        key_variable="NVIDIA_API_KEY",
        endpoints=_TEXT | {"embeddings"},
        quirks=Quirks(rename=_OLD_LIMIT),
    ),
    Provider(
        kind="ollama",
        summary="Ollama on this machine",
        base_url="http://127.0.0.1:11434/v1",
        key_variable="",
        endpoints=_LOCAL,
        quirks=Quirks(rename=_OLD_LIMIT),
        needs_key=False,
    ),
    Provider(
        kind="lmstudio",
        summary="LM Studio on this machine",
        base_url="http://127.0.0.1:1234/v1",
        key_variable="",
        endpoints=_LOCAL | _RESPONSES,
        quirks=Quirks(rename=_OLD_LIMIT),
        needs_key=False,
    ),
    Provider(
        kind="llamacpp",
        summary="llama.cpp's server",
        base_url="http://127.0.0.1:8080/v1",
        key_variable="",
        endpoints=_LOCAL | {"rerank"},
        needs_key=False,
    ),
    Provider(
        kind="vllm",
        summary="vLLM's server",
        base_url="http://127.0.0.1:8000/v1",
        key_variable="",
        endpoints=_LOCAL | _RESPONSES | {"rerank", "audio"},
        needs_key=False,
    ),
    Provider(
        kind="sglang",
        summary="SGLang's server",
        base_url="http://127.0.0.1:30000/v1",
        key_variable="",
        endpoints=_LOCAL | {"rerank"},
        needs_key=False,
    ),
    Provider(
        kind="vercel",
        summary="Vercel AI Gateway",
        base_url="https://ai-gateway.vercel.sh/v1",
        key_variable="AI_GATEWAY_API_KEY",
        endpoints=_EMBED,
        quirks=Quirks(usage_at="finish"),
    ),
    Provider(
        kind="cohere",
        summary="Cohere, by its OpenAI compatibility address",
        base_url="https://api.cohere.ai/compatibility/v1",
        key_variable="COHERE_API_KEY",
        key_variables=("CO_API_KEY",),
        endpoints=_EMBED,
        quirks=Quirks(
            rename=_OLD_LIMIT, refuse=_NOT_AT_COHERE, done_required=False, error_shape="flat"
        ),
    ),
    Provider(
        kind="gemini",
        summary="Gemini, by its OpenAI compatibility address",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
        key_variables=("GOOGLE_API_KEY",),
        endpoints=_EMBED | {"images"},
        quirks=Quirks(done_required=False, reasoning="outside"),
    ),
    Provider(
        kind="echo",
        summary="Built in: answers without any network, for trying the gateway out",
        base_url="",
        key_variable="",
        endpoints=_LOCAL | {"moderations"},
        auth="none",
        is_local=True,
        needs_key=False,
    ),
)

PROVIDERS: dict[str, Provider] = {row.kind: row for row in _ROWS}
"""Every kind of provider by its name."""
