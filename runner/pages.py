"""HTML pages that need nothing else: no network, no font, no library.

Texts of records are untrusted. Jinja escapes all of them, and a page's own policy lets no script and no style run whose
hash it does not name. page.css is the look of every page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.sentences import well_formed
from runner import __version__, charts, phrases

if TYPE_CHECKING:
    from markupsafe import Markup


def rendered(template: Path, filters: Mapping[str, Callable[..., Any]], **values: Any) -> str:
    """A template with these values, as text. Characters that no file can hold are replaced.

    The template knows `phrases`, `version` and `chart_style`, the filters number, signed, plain, some and hash, and
    those that are given.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=phrases.number, signed=phrases.signed, plain=phrases.plain, some=phrases.some, hash=policy_hash
    )
    environment.filters.update(filters)
    # Globals, because an included file sees them too.
    environment.globals.update(phrases=phrases, version=__version__, chart_style=safe(charts.STYLE))
    return well_formed(environment.get_template(template.name).render(**values))


def policy_hash(text: str) -> str:
    """The source expression of a Content-Security-Policy that allows this text as script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def safe(text: str) -> Markup:
    """Text of ours, in which every foreign text is escaped."""
    from markupsafe import Markup

    return Markup(text)
