"""What a page looks like to a person: whether it must be scrolled sideways, and whether its texts stand out."""

from __future__ import annotations

from playwright.sync_api import Page


def overflowing(page: Page) -> int:
    """Pixels that the page is wider than its window."""
    found: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found


def contrast(page: Page, text: str, ground: str) -> float:
    """The contrast of two colours of the style by WCAG 2.2, 1 to 21."""
    found: float = page.evaluate(
        """([text, ground]) => {
          const light = (name) => {
            const rgb = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
            const parts = [1, 3, 5].map((at) => parseInt(rgb.slice(at, at + 2), 16) / 255);
            const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const [a, b] = [light(text), light(ground)].sort((x, y) => y - x);
          return (a + 0.05) / (b + 0.05);
        }""",
        [text, ground],
    )
    return found
