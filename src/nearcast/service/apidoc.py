"""The OpenAPI as one page of plain HTML: no script, no request to anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

METHODS = ("get", "post", "put", "delete", "patch")
STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { border-bottom: 1px solid; margin-top: 2.5rem }
details { border: 1px solid #8886; border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem }
summary { cursor: pointer } summary b { display: inline-block; width: 4.5rem; font-family: ui-monospace, monospace }
summary code { font-weight: 600 } summary span { opacity: .75; margin-left: .5rem }
table { border-collapse: collapse; width: 100%; margin: .4rem 0 }
td, th { border-bottom: 1px solid #8883; padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }
pre { background: #8881; padding: .6rem; border-radius: 6px; overflow-x: auto }
"""


def api_page(spec: Mapping[str, Any]) -> str:
    """All operations by tag, then the shapes that they name."""
    info = spec["info"]
    body = "".join(
        f"<h2 id={_quoted(tag)}>{escape(tag)}</h2>{''.join(operations)}" for tag, operations in _by_tag(spec).items()
    )
    shapes = "".join(_shape(name, shape) for name, shape in spec.get("components", {}).get("schemas", {}).items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}: API</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])}: API</h1><p>{escape(info.get('summary', ''))}. "
        'For programs: <a href="openapi.json">openapi.json</a>. Keys go into the header '
        "<code>Authorization: Bearer KEY</code>; a server without any key asks for none.</p>"
        f"{body}<h2>Shapes</h2>{shapes}</body></html>"
    )


def _by_tag(spec: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, item in spec["paths"].items():
        for method in METHODS:
            if method in item:
                tag = item[method].get("tags", ["other"])[0]
                found.setdefault(tag, []).append(_operation(method, path, item[method]))
    return found


def _operation(method: str, path: str, told: Mapping[str, Any]) -> str:
    description = told.get("description", "")
    first = description.partition("\n")[0]
    answers = ", ".join(f"{status} {_schema(answer)}".strip() for status, answer in _good(told["responses"]))
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code> <span>{escape(first)}</span></summary>"
        f"<p>{escape(description)}</p>{_parameters(told)}{_body(told)}<p>Answers: {answers}; errors as "
        f'<a href="#Problem">Problem</a></p><pre>{escape(_example(method, path, told))}</pre></details>'
    )


def _good(responses: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((status, answer) for status, answer in responses.items() if status.startswith("2"))


def _parameters(told: Mapping[str, Any]) -> str:
    rows = [
        f"<tr><td><code>{escape(p['name'])}</code></td><td>{p['in']}{', needed' if p.get('required') else ''}</td>"
        f"<td>{_type(p['schema'])}</td><td>{escape(p.get('description') or '')}</td></tr>"
        for p in told.get("parameters", ())
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def _body(told: Mapping[str, Any]) -> str:
    kinds = told.get("requestBody", {}).get("content", {})
    rows = [f"<tr><td><code>{escape(kind)}</code></td><td>{_type(c['schema'])}</td></tr>" for kind, c in kinds.items()]
    return f"<p>Body:</p><table>{''.join(rows)}</table>" if rows else ""


def _schema(holder: Mapping[str, Any]) -> str:
    return ", ".join(_type(content.get("schema", {})) for content in holder.get("content", {}).values())


def _shape(name: str, shape: Mapping[str, Any]) -> str:
    rows = [
        f"<tr><td><code>{escape(field)}</code></td><td>{_type(value)}"
        f"{', needed' if field in shape.get('required', ()) else ''}</td>"
        f"<td>{escape(value.get('description', ''))}</td></tr>"
        for field, value in shape.get("properties", {}).items()
    ]
    return (
        f"<h3 id={_quoted(name)}>{escape(name)}</h3><p>{escape(shape.get('description', ''))}</p>"
        f"<table>{''.join(rows)}</table>"
    )


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words, with links to shapes."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"<a href={_quoted('#' + name)}>{escape(name)}</a>"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(map(_type, schema[several]))
    if "enum" in schema or "const" in schema:
        return " or ".join(escape(json.dumps(value)) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    sides = [f"{sign} {schema[key]:g}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in schema]
    return escape(" ".join([schema.get("type", "anything"), *sides]))


def _example(method: str, path: str, told: Mapping[str, Any]) -> str:
    """A request for a shell."""
    needed = [p for p in told.get("parameters", ()) if p["in"] == "query" and p.get("required")]
    query = "?" + "&".join(f"{p['name']}=…" for p in needed) if needed else ""
    kinds = list(told.get("requestBody", {}).get("content", {}))
    given = f" -H 'content-type: {kinds[0]}' -d '…'" if kinds else ""
    return f"curl -X {method.upper()} 'http://127.0.0.1:8080{path}{query}'{given}"


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'
