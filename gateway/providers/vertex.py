"""Where Vertex is: below a project and a region, at the host of that region."""

_MULTI = frozenset({"us", "eu"})


def vertex_base_url(project: str, region: str) -> str:
    """Return the base URL of a project in a region; `global` and the multi-regions have hosts of their own.

    Without a project: the address for API keys, which name their project themselves.
    """
    if not project:
        return "https://aiplatform.googleapis.com/v1"
    if region in {"", "global"}:
        host, region = "aiplatform.googleapis.com", "global"
    elif region in _MULTI:
        host = f"aiplatform.{region}.rep.googleapis.com"
    else:
        host = f"{region}-aiplatform.googleapis.com"
    return f"https://{host}/v1/projects/{project}/locations/{region}"
