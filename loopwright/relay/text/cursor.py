"""A place among the words of a text: what comes next, and what must."""

from __future__ import annotations

import json
from typing import NoReturn

from loopwright.relay.text.errors import BadText
from loopwright.relay.text.lexer import Source, Token, unquoted


class Cursor:
    """Reads words one by one; the parsers for types, values and expressions are built on it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.tokens
        self.place = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def next(self) -> Token:
        token = self.tokens[self.place]
        if token.kind != "END":
            self.place += 1
        return token

    def sees(self, *texts: str) -> bool:
        """Whether the next word is one of these words or signs."""
        token = self.tokens[self.place]
        return token.text in texts and token.kind in ("SIGN", "WORD")

    def sees_after(self, text: str) -> bool:
        """Whether the word after the next one is this sign."""
        after = self.tokens[self.place + 1] if self.place + 1 < len(self.tokens) else None
        return after is not None and after.kind == "SIGN" and after.text == text

    def takes(self, text: str) -> bool:
        """Go past the next word if it is this one."""
        if self.sees(text):
            self.place += 1
            return True
        return False

    def need(self, text: str, where: str) -> Token:
        """Go past the next word, which must be this one."""
        if not self.sees(text):
            self.fail(f"{text!r} is needed {where}")
        return self.next()

    def need_kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            self.fail(f"{what} is needed")
        return self.next()

    def fail(self, problem: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
        token = token or self.token
        result = "the text ends" if token.kind == "END" else f"{token.text!r} stands"
        raise BadText(f"{problem}, and {result} there", self.source.token_at(token), hint)

    def name(self, token: Token) -> str:
        """A name without its sign and quotes."""
        text = token.text[1:] if token.kind in ("LOCAL", "GLOBAL") else token.text
        try:
            return unquoted(text)
        except json.JSONDecodeError as error:
            raise BadText(f"the name is badly quoted: {error.msg}", self.source.token_at(token)) from None
