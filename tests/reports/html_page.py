"""HTML as a test reads it."""

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """Checks that tags are balanced, and gathers them with the text of the page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.styles: list[str] = []  # all CSS, of elements and of attributes
        self.flagged: list[str] = []  # cells that stand out
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("class") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.styles.append(dict(attrs).get("style") or "")

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self.open.pop()
        assert opened == tag

    def handle_data(self, data: str) -> None:
        tag, classes = self.open[-1] if self.open else ("", "")
        if tag == "style":
            self.styles.append(data)
            return
        if "flag" in classes.split():
            self.flagged.append(data)
        self.text += data
